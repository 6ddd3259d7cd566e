"""The topics a broker is created with, and the settings that decide which."""

from typing import Final

import msgspec
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message import topics
from pocketmq.protocol.message.flags import PERM_INHERIT, PERM_READ, PERM_WRITE

READ_WRITE: Final = PERM_READ | PERM_WRITE
READ_WRITE_INHERIT: Final = READ_WRITE | PERM_INHERIT
_SCHEDULE_QUEUE_NUMS: Final = 18
_BENCHMARK_QUEUE_NUMS: Final = 1024


class TopicSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The broker settings that decide which topics exist; names and defaults of broker.conf. `emulate` is 4 or 5."""

    broker_cluster_name: str = "DefaultCluster"
    broker_name: str = "broker-a"
    auto_create_topic_enable: bool = True
    default_topic_queue_nums: int = 8
    cluster_topic_enable: bool = True
    broker_topic_enable: bool = True
    trace_topic_enable: bool = False
    msg_trace_topic_name: str = topics.TRACE_TOPIC
    revive_queue_num: int = 8
    timer_wheel_enable: bool = True
    enable_lmq: bool = False
    emulate: int = 5


def built_in_topics(settings: TopicSettings) -> list[TopicConfig]:
    """The topics of a new broker, in the order of the official TopicConfigManager.init."""
    cluster, broker = settings.broker_cluster_name, settings.broker_name
    result = [plain_topic(topics.SELF_TEST_TOPIC)]
    if settings.auto_create_topic_enable:
        result.append(
            plain_topic(topics.AUTO_CREATE_TOPIC, settings.default_topic_queue_nums, READ_WRITE_INHERIT)
        )
    result += [
        plain_topic(topics.BENCHMARK_TOPIC, _BENCHMARK_QUEUE_NUMS),
        plain_topic(cluster, 16, READ_WRITE_INHERIT if settings.cluster_topic_enable else PERM_INHERIT),
        plain_topic(broker, 1, READ_WRITE_INHERIT if settings.broker_topic_enable else PERM_INHERIT),
        plain_topic(topics.OFFSET_MOVED_TOPIC),
        plain_topic(topics.SCHEDULE_TOPIC, _SCHEDULE_QUEUE_NUMS),
    ]
    if settings.trace_topic_enable:
        result.append(plain_topic(settings.msg_trace_topic_name))
    result.append(plain_topic(topics.reply_topic(cluster)))
    if settings.emulate < 5:
        return result
    result += [
        plain_topic(topics.revive_topic(cluster), settings.revive_queue_num),
        plain_topic(topics.sync_member_topic(broker), 1, PERM_INHERIT),
        plain_topic(topics.HALF_TOPIC),
        plain_topic(topics.OP_HALF_TOPIC),
        plain_topic(topics.ROCKSDB_HALF_TOPIC),
        plain_topic(topics.ROCKSDB_OP_HALF_TOPIC),
    ]
    if settings.timer_wheel_enable:
        result.append(plain_topic(topics.TIMER_TOPIC))
    return result


def plain_topic(name: str, queue_nums: int = 1, perm: int = READ_WRITE) -> TopicConfig:
    """A topic with as many read queues as write queues and otherwise default values."""
    return TopicConfig(topic_name=name, read_queue_nums=queue_nums, write_queue_nums=queue_nums, perm=perm)
