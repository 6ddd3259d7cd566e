"""TopicTable: the topics of one broker, kept in config/topics.json.

It knows the built-in topics, the rules by which a send creates a topic, and the checks of an administrator's change.
Not here: names (`pocketmq.protocol.message.topics`), attributes (`attributes.py`), queues and messages.

    {"dataVersion":{...}, "topicConfigTable":{"orders":{"attributes":{},"order":false,"perm":6,...}}}
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec
from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.protocol.bodies.topic_config import TopicConfig, TopicConfigSerializeWrapper
from pocketmq.protocol.message import topics
from pocketmq.protocol.message.flags import PERM_INHERIT, PERM_READ, PERM_WRITE, is_inherited
from pocketmq.store import layout

from ..config.broker_config import BrokerConfig
from .attributes import TOPIC_ATTRIBUTES
from .json_table import ConfigTable, NowMs, TextOf
from .table_text import file_pieces

READ_WRITE: Final = PERM_READ | PERM_WRITE
READ_WRITE_INHERIT: Final = READ_WRITE | PERM_INHERIT
_SCHEDULE_QUEUE_NUMS: Final = 18
_BENCHMARK_QUEUE_NUMS: Final = 1024


def built_in_topics(config: BrokerConfig) -> list[TopicConfig]:
    """The topics of a new broker, in the order of the official TopicConfigManager.init."""
    cluster, broker = config.broker_cluster_name, config.broker_name
    result = [plain_topic(topics.SELF_TEST_TOPIC)]
    if config.auto_create_topic_enable:
        result.append(
            plain_topic(topics.AUTO_CREATE_TOPIC, config.default_topic_queue_nums, READ_WRITE_INHERIT)
        )
    result += [
        plain_topic(topics.BENCHMARK_TOPIC, _BENCHMARK_QUEUE_NUMS),
        plain_topic(cluster, 16, READ_WRITE_INHERIT if config.cluster_topic_enable else PERM_INHERIT),
        plain_topic(broker, 1, READ_WRITE_INHERIT if config.broker_topic_enable else PERM_INHERIT),
        plain_topic(topics.OFFSET_MOVED_TOPIC),
        plain_topic(topics.SCHEDULE_TOPIC, _SCHEDULE_QUEUE_NUMS),
    ]
    if config.trace_topic_enable:
        result.append(plain_topic(config.msg_trace_topic_name))
    result.append(plain_topic(topics.reply_topic(cluster)))
    if not config.is_5:
        return result
    result += [
        plain_topic(topics.revive_topic(cluster), config.revive_queue_num),
        plain_topic(topics.sync_member_topic(broker), 1, PERM_INHERIT),
        plain_topic(topics.HALF_TOPIC),
        plain_topic(topics.OP_HALF_TOPIC),
        plain_topic(topics.ROCKSDB_HALF_TOPIC),
        plain_topic(topics.ROCKSDB_OP_HALF_TOPIC),
    ]
    if config.store.timer_wheel_enable:
        result.append(plain_topic(topics.TIMER_TOPIC))
    return result


def plain_topic(name: str, queue_nums: int = 1, perm: int = READ_WRITE) -> TopicConfig:
    """A topic with as many read queues as write queues and otherwise default values."""
    return TopicConfig(topic_name=name, read_queue_nums=queue_nums, write_queue_nums=queue_nums, perm=perm)


class TopicTable(ConfigTable[TopicConfig]):
    """Official TopicConfigManager."""

    state_fields = ("_rows",)
    known_attributes = TOPIC_ATTRIBUTES
    body_type = TopicConfigSerializeWrapper

    def __init__(self, folder: Path, now_ms: NowMs, config: BrokerConfig) -> None:
        super().__init__(folder / layout.TOPICS, now_ms, config)
        self._rows = {topic.name: topic for topic in built_in_topics(config)}
        reserved = topics.SYSTEM_TOPICS if config.is_5 else topics.SYSTEM_TOPICS - topics.SYSTEM_TOPICS_OF_5
        self.system_topics = reserved | self._rows.keys()
        """The reply to 305: reserved names plus those of this broker's own topics."""
        self._names_changed: set[str] = set()

    # --- questions

    @property
    def topics(self) -> Mapping[str, TopicConfig]:
        """Read-only view by name; it changes with the table."""
        return MappingProxyType(self._rows)

    def is_system_topic(self, topic: str) -> bool:
        """True if an administrator may not create or delete it: `The topic[T] is conflict with system topic.`"""
        return topic in self.system_topics or topic.startswith(topics.SYSTEM_PREFIX)

    def is_order_topic(self, topic: str) -> bool:
        config = self._rows.get(topic)
        return config is not None and config.order

    def page(self, data_version: str | None, sequence: int, max_count: int) -> dict[str, TopicConfig]:
        """One page of the reply to 21 (official subTopicConfigTable)."""
        return {name: self._rows[name] for name in self.page_of_names(data_version, sequence, max_count)}

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
        template = self._rows.get(default_topic)
        if template is None:
            return None
        if default_topic == topics.AUTO_CREATE_TOPIC and not self._config.auto_create_topic_enable:
            # A file written while creation was allowed may have the template: it loses the inherit bit for good.
            template = self._rows[default_topic] = msgspec.structs.replace(template, perm=READ_WRITE)
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
        if config.order == order or topic not in self._rows:
            return config
        return self._put(msgspec.structs.replace(config, order=order))

    def create_if_absent(self, config: TopicConfig) -> TopicConfig:
        """The existing topic of that name, or `config`, which is then added."""
        existing = self.find(config.name)
        return self._put(config) if existing is None else existing

    def delete(self, topic: str) -> bool:
        """Remove the topic. False if it does not exist."""
        if self._rows.pop(topic, None) is None:
            return False
        self._changed(topic)
        return True

    def mark_ordered(self, names: Iterable[str]) -> None:
        """Set the order flag of the topics that a name server lists as ordered (official updateOrderTopicConfig)."""
        changed = []
        for name in names:
            config = self._rows.get(name)
            if config is not None and not config.order:
                self._rows[name] = msgspec.structs.replace(config, order=True)
                changed.append(name)
        if changed:
            self._changed(*changed)

    def replace_all(self, table: Mapping[str, TopicConfig], data_version: DataVersion) -> None:
        """At a slave: take over the master's table; topics that the master does not have are removed."""
        self._rows = dict(table)
        self._names_changed.update(table)
        self.data_version = data_version
        self.dirty = True

    def _default(self, name: str) -> TopicConfig:
        return plain_topic(name)

    def _put(self, config: TopicConfig) -> TopicConfig:
        self._rows[config.name] = config
        self._changed(config.name)
        return config

    def _changed(self, *names: str) -> None:
        """`names` are those of the changed topics; all of them unless given."""
        self._names_changed.update(names or self._rows)
        super()._changed()

    # --- text

    def copy(self) -> TopicConfigSerializeWrapper:
        return TopicConfigSerializeWrapper(
            topic_config_table=self._rows.copy(), data_version=self.data_version
        )

    def _frozen(self) -> TextOf:
        table, version = self._rows.copy(), self.data_version
        return lambda: file_pieces({"dataVersion": version, "topicConfigTable": self._text.pieces(table)})

    def _read(self, wrapper: TopicConfigSerializeWrapper) -> None:
        self._rows.update(wrapper.topic_config_table)
        self.data_version = wrapper.data_version
