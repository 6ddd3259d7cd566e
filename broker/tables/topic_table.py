"""TopicTable: the topics of one broker, kept in config/topics.json.

It knows the built-in topics, the rules by which a send creates a topic, and the checks of an administrator's change.
Not here: names (`pocketmq.protocol.message.topics`), attributes (`attributes.py`), queues and messages.

    {"dataVersion":{...}, "topicConfigTable":{"orders":{"attributes":{},"order":false,"perm":6,...}}}
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec
from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.protocol.bodies.topic_config import TopicConfig, TopicConfigSerializeWrapper
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message import topics
from pocketmq.protocol.message.flags import (
    PERM_INHERIT,
    is_inherited,
)
from pocketmq.protocol.text import fastjson
from pocketmq.store import layout
from pocketmq.store.files.json_file import MAX_FILE_BYTES

from .attributes import TOPIC_ATTRIBUTES, alter_attributes
from .built_in_topics import READ_WRITE, TopicSettings, built_in_topics, plain_topic
from .json_table import JsonTable
from .table_text import MapText, file_text


class TopicTable(JsonTable):
    """Official TopicConfigManager. Topic configs are immutable: a change replaces the config."""

    state_fields = ("_topics",)

    def __init__(
        self,
        config_folder: Path,
        now_ms: Callable[[], int],
        settings: TopicSettings,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(config_folder / layout.TOPICS, now_ms, on_change)
        self.settings = settings
        self._text = MapText(is_cached=True)
        self._topics = {topic.name: topic for topic in built_in_topics(settings)}
        reserved = topics.SYSTEM_TOPICS
        if settings.emulate < 5:
            reserved -= topics.SYSTEM_TOPICS_OF_5
        self._system_topics = reserved | self._topics.keys()
        self._names_changed: set[str] = set()

    # --- questions

    def find(self, topic: str) -> TopicConfig | None:
        """The topic's config. Light queues (`%LMQ%...`) are in no table and all have default settings."""
        config = self._topics.get(topic)
        if config is None and self.settings.enable_lmq and topics.is_lmq(topic):
            return plain_topic(topic)
        return config

    def __contains__(self, topic: str) -> bool:
        return self.find(topic) is not None

    def __len__(self) -> int:
        return len(self._topics)

    @property
    def topics(self) -> Mapping[str, TopicConfig]:
        """Read-only view by name; it changes with the table."""
        return MappingProxyType(self._topics)

    @property
    def system_topics(self) -> frozenset[str]:
        """The reply to 305: reserved names plus those of this broker's own topics."""
        return frozenset(self._system_topics)

    def is_system_topic(self, topic: str) -> bool:
        """True if an administrator may not create or delete it: `The topic[T] is conflict with system topic.`"""
        return topic in self._system_topics or topic.startswith(topics.SYSTEM_PREFIX)

    def is_order_topic(self, topic: str) -> bool:
        config = self._topics.get(topic)
        return config is not None and config.order

    def page(self, data_version: str | None, sequence: int, max_count: int) -> dict[str, TopicConfig]:
        """One page of the reply to 21: topics sorted by name from index `sequence`; from the start if `data_version`
        (the JSON that the requester saw) is no longer current (official subTopicConfigTable)."""
        start = page_start(data_version, sequence, self.data_version)
        names = sorted(self._topics)[start : start + max_count]
        return {name: self._topics[name] for name in names}

    # --- changes

    def take_changed(self) -> set[str]:
        """Names of the topics that were created, changed or deleted since the last call."""
        names, self._names_changed = self._names_changed, set()
        return names

    def create_for_send(
        self, topic: str, default_topic: str, default_topic_queue_nums: int, topic_sys_flag: int = 0
    ) -> TopicConfig | None:
        """The topic, created from the template `default_topic` if missing (official createTopicInSendMessageMethod).

        None if the template is missing or may not be inherited (perm bit 1).
        """
        config = self.find(topic)
        if config is not None:
            return config
        template = self._topics.get(default_topic)
        if template is None:
            return None
        if default_topic == topics.AUTO_CREATE_TOPIC and not self.settings.auto_create_topic_enable:
            # A file written while creation was allowed may have the template: it loses the inherit bit for good.
            template = self._topics[default_topic] = msgspec.structs.replace(template, perm=READ_WRITE)
            self._names_changed.add(default_topic)
        if not is_inherited(template.perm):
            return None
        queue_nums = max(0, min(default_topic_queue_nums, template.write_queue_nums))
        return self._put(
            TopicConfig(
                topic_name=topic,
                read_queue_nums=queue_nums,
                write_queue_nums=queue_nums,
                perm=template.perm & ~PERM_INHERIT,
                topic_sys_flag=topic_sys_flag,
                topic_filter_type=template.topic_filter_type,
            )
        )

    def create_for_send_back(
        self,
        topic: str,
        queue_nums: int,
        perm: int = READ_WRITE,
        topic_sys_flag: int = 0,
        *,
        order: bool = False,
    ) -> TopicConfig:
        """A retry, dead-letter or half topic, created if missing; an existing one gets the flag `order` (official
        createTopicInSendMessageBackMethod)."""
        config = self.find(topic)
        if config is None:
            config = plain_topic(topic, queue_nums, perm)
            return self._put(msgspec.structs.replace(config, topic_sys_flag=topic_sys_flag, order=order))
        if config.order == order or topic not in self._topics:
            return config
        return self._put(msgspec.structs.replace(config, order=order))

    def create_if_absent(self, config: TopicConfig) -> TopicConfig:
        """The existing topic of that name, or `config`, which is then added."""
        existing = self.find(config.name)
        return self._put(config) if existing is None else existing

    def update(self, config: TopicConfig) -> TopicConfig | None:
        """Create or replace a topic (17). `config.attributes` are changes: keys prefixed with `+` or `-`.

        None for a light queue, which is not stored. Raises AttributeRefusedError and then changes nothing.
        """
        if self.settings.enable_lmq and topics.is_lmq(config.name):
            return None
        old = self._topics.get(config.name)
        attributes: dict[str, str] = {}
        if self.settings.emulate >= 5:
            current = None if old is None else old.attributes
            attributes = alter_attributes(TOPIC_ATTRIBUTES, current, config.attributes)
        return self._put(msgspec.structs.replace(config, attributes=attributes))

    def delete(self, topic: str) -> bool:
        """Remove the topic. False if it does not exist."""
        if self._topics.pop(topic, None) is None:
            return False
        self._changed(topic)
        return True

    def mark_ordered(self, names: Iterable[str]) -> None:
        """Set the order flag of the topics that a name server lists as ordered (official updateOrderTopicConfig)."""
        changed = []
        for name in names:
            config = self._topics.get(name)
            if config is not None and not config.order:
                self._topics[name] = msgspec.structs.replace(config, order=True)
                changed.append(name)
        if changed:
            self._changed(*changed)

    def replace_all(self, table: Mapping[str, TopicConfig], data_version: DataVersion) -> None:
        """At a slave: take over the master's table; topics that the master does not have are removed."""
        self._topics = dict(table)
        self._names_changed.update(table)
        self.data_version = data_version
        self.dirty = True

    def _put(self, config: TopicConfig) -> TopicConfig:
        self._topics[config.name] = config
        self._changed(config.name)
        return config

    def _changed(self, *names: str) -> None:
        """`names` are those of the changed topics; all of them unless given."""
        self._names_changed.update(names or self._topics)
        super()._changed()

    # --- text

    def to_json(self, *, pretty: bool = False) -> bytes:
        """`{"dataVersion":...,"topicConfigTable":...}`: body of the reply to 21 in 4.x, and the file."""
        if pretty:
            return self._frozen()()
        return fastjson.dumps(self.copy())

    def copy(self) -> TopicConfigSerializeWrapper:
        """The table as it is now: nobody changes the copy, so any thread can make its text."""
        return TopicConfigSerializeWrapper(
            topic_config_table=self._topics.copy(), data_version=self.data_version
        )

    def _frozen(self) -> Callable[[], bytes]:
        table, version = self._topics.copy(), self.data_version
        return lambda: file_text({"dataVersion": version, "topicConfigTable": self._text.of(table)})

    def read_content(self, content: bytes) -> bool:
        wrapper = fastjson.decode(content, TopicConfigSerializeWrapper, max_bytes=MAX_FILE_BYTES)
        self._topics.update(wrapper.topic_config_table)
        self.data_version = wrapper.data_version
        return True


def page_start(data_version: str | None, sequence: int, current: DataVersion) -> int:
    """First index of a page of 21 or 201: `sequence` if the requester's data version is current, otherwise 0."""
    if sequence <= 0 or not data_version or data_version.isspace():
        return 0
    try:
        return sequence if fastjson.decode(data_version, DataVersion) == current else 0
    except BodyError:
        return 0
