"""GroupTable: the consumer groups of one broker, kept in config/subscriptionGroup.json.

It holds the settings of groups, and the topics that a group may not read. Not here: which consumers are online (the
broker), what a group has consumed (`offset_table.py`).

    {"dataVersion":{...}, "forbiddenTable":{"g":{"topic":4}},
     "subscriptionGroupTable":{"g":{"consumeEnable":true,...}}}
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig, SubscriptionGroupWrapper
from pocketmq.protocol.message import topics
from pocketmq.store import layout

from ..config.broker_config import BrokerConfig
from .attributes import GROUP_ATTRIBUTES
from .json_table import ConfigTable, NowMs, TextOf
from .table_text import file_pieces

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
READ_FORBIDDEN: Final = 4
"""The bit set by 353 with readable=false (official PermName.INDEX_PERM_READ is its index)."""


class GroupTable(ConfigTable[SubscriptionGroupConfig]):
    """Official SubscriptionGroupManager."""

    state_fields = ("_rows", "_forbidden")
    known_attributes = GROUP_ATTRIBUTES
    body_type = SubscriptionGroupWrapper

    def __init__(self, folder: Path, now_ms: NowMs, config: BrokerConfig) -> None:
        super().__init__(folder / layout.GROUPS, now_ms, config)
        names = (*BUILT_IN_GROUPS, TRANSACTION_GROUP) if config.is_5 else BUILT_IN_GROUPS
        self._rows = {name: self._default(name) for name in names}
        self._forbidden: dict[str, dict[str, int]] = {}

    # --- questions

    @property
    def groups(self) -> Mapping[str, SubscriptionGroupConfig]:
        """Read-only view by name; it changes with the table."""
        return MappingProxyType(self._rows)

    def page(self, data_version: str | None, sequence: int, max_count: int) -> SubscriptionGroupWrapper:
        """One page of the reply to 201, with the forbidden topics of its groups (official subGroupTable)."""
        names = self.page_of_names(data_version, sequence, max_count)
        return SubscriptionGroupWrapper(
            subscription_group_table={name: self._rows[name] for name in names},
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
        may_create_system = not self._config.is_5 or self._config.enable_create_sys_group
        if not self._config.auto_create_subscription_group and not (
            may_create_system and topics.is_system_group(group)
        ):
            return None
        if self._config.is_5 and topics.group_refusal(group) is not None:
            return None
        return self._put(self._default(group))

    def delete(self, group: str) -> bool:
        """Remove the group and its forbidden topics. False if it had neither."""
        forbidden = self._forbidden.pop(group, None)
        if self._rows.pop(group, None) is None and forbidden is None:
            return False
        self._changed()
        return True

    def replace_all(self, table: Mapping[str, SubscriptionGroupConfig], data_version: DataVersion) -> None:
        """At a slave: take over the master's groups; forbidden topics stay, as at the official slave."""
        self._rows = dict(table)
        self.data_version = data_version
        self.dirty = True

    def _default(self, name: str) -> SubscriptionGroupConfig:
        return SubscriptionGroupConfig(group_name=name)

    def _put(self, config: SubscriptionGroupConfig) -> SubscriptionGroupConfig:
        self._rows[config.name] = config
        self._changed()
        return config

    # --- forbidden topics (353)

    def is_forbidden(self, group: str, topic: str) -> bool:
        topic_bits = self._forbidden.get(group)
        return topic_bits is not None and bool(topic_bits.get(topic, 0) & READ_FORBIDDEN)

    def set_forbidden(self, group: str, topic: str, *, forbidden: bool) -> None:
        """Forbid or allow a group to read one topic.

        The official updateForbiddenValue forgets *all* topics of the group when the last bit of one topic is cleared,
        and does not save that; here only the named topic changes.
        """
        topic_bits = self._forbidden.get(group, {})
        old = max(0, topic_bits.get(topic, 0))
        new = old | READ_FORBIDDEN if forbidden else old & ~READ_FORBIDDEN
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

    def copy(self) -> SubscriptionGroupWrapper:
        return SubscriptionGroupWrapper(
            subscription_group_table=self._rows.copy(),
            forbidden_table={group: bits.copy() for group, bits in self._forbidden.items()},
            data_version=self.data_version,
        )

    def _frozen(self) -> TextOf:
        table, version = self._rows.copy(), self.data_version
        forbidden = {group: bits.copy() for group, bits in self._forbidden.items()}
        return lambda: file_pieces(
            {
                "dataVersion": version,
                "forbiddenTable": forbidden,
                "subscriptionGroupTable": self._text.pieces(table),
            }
        )

    def _read(self, wrapper: SubscriptionGroupWrapper) -> None:
        self._rows.update(wrapper.subscription_group_table)
        self._forbidden.update(wrapper.forbidden_table)
        self.data_version = wrapper.data_version
