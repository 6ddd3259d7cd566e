"""GroupTable: the consumer groups of one broker, kept in config/subscriptionGroup.json.

It holds the settings of groups, and the topics that a group may not read. Not here: which consumers are online (the
broker), what a group has consumed (`offset_table.py`).

    {"dataVersion":{...}, "forbiddenTable":{"g":{"topic":4}},
     "subscriptionGroupTable":{"g":{"consumeEnable":true,...}}}
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec
from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig, SubscriptionGroupWrapper
from pocketmq.protocol.message import topics
from pocketmq.protocol.text import fastjson
from pocketmq.store import layout
from pocketmq.store.files.json_file import MAX_FILE_BYTES

from .attributes import GROUP_ATTRIBUTES, alter_attributes
from .json_table import JsonTable
from .table_text import MapText, file_text
from .topic_table import page_start

BUILT_IN_GROUPS: Final = (
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
)
TRANSACTION_GROUP: Final = "CID_RMQ_SYS_TRANS"
READ_FORBIDDEN: Final = 2
"""Index of the bit set by 353 with readable=false (official PermName.INDEX_PERM_READ)."""


class GroupSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The broker settings that decide which groups exist; names and defaults of broker.conf. `emulate` is 4 or 5."""

    auto_create_subscription_group: bool = True
    enable_create_sys_group: bool = True
    enable_lmq: bool = False
    emulate: int = 5


class GroupTable(JsonTable):
    """Official SubscriptionGroupManager. Group configs are immutable: a change replaces the config."""

    state_fields = (
        "_groups",
        "_forbidden",
    )

    def __init__(
        self,
        config_folder: Path,
        now_ms: Callable[[], int],
        settings: GroupSettings,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(config_folder / layout.GROUPS, now_ms, on_change)
        self.settings = settings
        self._text = MapText(is_cached=True)
        names = BUILT_IN_GROUPS if settings.emulate < 5 else (*BUILT_IN_GROUPS, TRANSACTION_GROUP)
        self._groups = {name: SubscriptionGroupConfig(group_name=name) for name in names}
        self._forbidden: dict[str, dict[str, int]] = {}

    # --- questions

    def find(self, group: str) -> SubscriptionGroupConfig | None:
        """The group's config. Groups of light queues (`%LMQ%...`) are in no table and all have default settings."""
        config = self._groups.get(group)
        if config is None and self.settings.enable_lmq and topics.is_lmq(group):
            return SubscriptionGroupConfig(group_name=group)
        return config

    def __contains__(self, group: str) -> bool:
        return self.find(group) is not None

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def groups(self) -> Mapping[str, SubscriptionGroupConfig]:
        """Read-only view by name; it changes with the table."""
        return MappingProxyType(self._groups)

    def page(self, data_version: str | None, sequence: int, max_count: int) -> SubscriptionGroupWrapper:
        """One page of the reply to 201: groups sorted by name from index `sequence`, with their forbidden topics; from
        the start if `data_version` (the JSON that the requester saw) is no longer current (official subGroupTable)."""
        start = page_start(data_version, sequence, self.data_version)
        names = sorted(self._groups)[start : start + max_count]
        return SubscriptionGroupWrapper(
            subscription_group_table={name: self._groups[name] for name in names},
            forbidden_table={name: self._forbidden[name].copy() for name in names if name in self._forbidden},
            data_version=self.data_version,
        )

    # --- changes

    def find_or_create(self, group: str) -> SubscriptionGroupConfig | None:
        """The group's config, created with defaults if that is allowed (official findSubscriptionGroupConfig). None if
        it is not, or (5.x) if the name is not allowed."""
        config = self.find(group)
        if config is not None:
            return config
        may_create_system = self.settings.emulate < 5 or self.settings.enable_create_sys_group
        if not self.settings.auto_create_subscription_group and not (
            may_create_system and topics.is_system_group(group)
        ):
            return None
        if self.settings.emulate >= 5 and topics.group_refusal(group) is not None:
            return None
        return self._put(SubscriptionGroupConfig(group_name=group))

    def update(self, config: SubscriptionGroupConfig) -> SubscriptionGroupConfig | None:
        """Create or replace a group (200). `config.attributes` are changes: keys prefixed with `+` or `-`.

        None for a group of a light queue, which is not stored. Raises AttributeRefusedError and then changes nothing.
        """
        if self.settings.enable_lmq and topics.is_lmq(config.name):
            return None
        old = self._groups.get(config.name)
        attributes: dict[str, str] = {}
        if self.settings.emulate >= 5:
            current = None if old is None else old.attributes
            attributes = alter_attributes(GROUP_ATTRIBUTES, current, config.attributes)
        return self._put(msgspec.structs.replace(config, attributes=attributes))

    def delete(self, group: str) -> bool:
        """Remove the group and its forbidden topics. False if it had neither."""
        forbidden = self._forbidden.pop(group, None)
        if self._groups.pop(group, None) is None and forbidden is None:
            return False
        self._changed()
        return True

    def replace_all(self, table: Mapping[str, SubscriptionGroupConfig], data_version: DataVersion) -> None:
        """At a slave: take over the master's groups; forbidden topics stay, as at the official slave."""
        self._groups = dict(table)
        self.data_version = data_version
        self.dirty = True

    def _put(self, config: SubscriptionGroupConfig) -> SubscriptionGroupConfig:
        self._groups[config.name] = config
        self._changed()
        return config

    # --- forbidden topics (353)

    def is_forbidden(self, group: str, topic: str, index: int = READ_FORBIDDEN) -> bool:
        topic_bits = self._forbidden.get(group)
        return topic_bits is not None and bool(topic_bits.get(topic, 0) & (1 << index))

    def set_forbidden(self, group: str, topic: str, *, forbidden: bool, index: int = READ_FORBIDDEN) -> None:
        """Forbid or allow a group one action (the bit `index`) on one topic.

        The official updateForbiddenValue forgets *all* topics of the group when the last bit of one topic is cleared,
        and does not save that; here only the named topic changes.
        """
        topic_bits = self._forbidden.get(group, {})
        old = max(0, topic_bits.get(topic, 0))
        new = old | 1 << index if forbidden else old & ~(1 << index)
        if new == old:
            return
        if new:
            self._forbidden.setdefault(group, topic_bits)[topic] = new
        else:
            del topic_bits[topic]
            if not topic_bits:
                del self._forbidden[group]
        self._changed()

    # --- text

    def to_json(self, *, pretty: bool = False) -> bytes:
        """Body of 201 and the file."""
        if pretty:
            return self._frozen()()
        return fastjson.dumps(self.copy())

    def copy(self) -> SubscriptionGroupWrapper:
        """The table as it is now: nobody changes the copy, so any thread can make its text."""
        return SubscriptionGroupWrapper(
            subscription_group_table=self._groups.copy(),
            forbidden_table={group: bits.copy() for group, bits in self._forbidden.items()},
            data_version=self.data_version,
        )

    def _frozen(self) -> Callable[[], bytes]:
        table, version = self._groups.copy(), self.data_version
        forbidden = {group: bits.copy() for group, bits in self._forbidden.items()}
        return lambda: file_text(
            {
                "dataVersion": version,
                "forbiddenTable": forbidden,
                "subscriptionGroupTable": self._text.of(table),
            }
        )

    def read_content(self, content: bytes) -> bool:
        wrapper = fastjson.decode(content, SubscriptionGroupWrapper, max_bytes=MAX_FILE_BYTES)
        self._groups.update(wrapper.subscription_group_table)
        self._forbidden.update(wrapper.forbidden_table)
        self.data_version = wrapper.data_version
        return True
