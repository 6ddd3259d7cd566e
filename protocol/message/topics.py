"""Topic and group names: how they are built, which are reserved, which are refused.

Refusals have the official words, because clients show them. The topics of a broker are in
`pocketmq.broker.tables.topic_table`.
"""

import re
from typing import Final

RETRY_PREFIX: Final = "%RETRY%"
DLQ_PREFIX: Final = "%DLQ%"
LMQ_PREFIX: Final = "%LMQ%"
SYSTEM_PREFIX: Final = "rmq_sys_"
SYSTEM_GROUP_PREFIX: Final = "CID_RMQ_SYS_"

AUTO_CREATE_TOPIC: Final = "TBW102"
SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
BENCHMARK_TOPIC: Final = "BenchmarkTest"
SELF_TEST_TOPIC: Final = "SELF_TEST_TOPIC"
OFFSET_MOVED_TOPIC: Final = "OFFSET_MOVED_EVENT"
TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
HALF_TOPIC: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_HALF_TOPIC: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
ROCKSDB_HALF_TOPIC: Final = "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC"
ROCKSDB_OP_HALF_TOPIC: Final = "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC"
CHECK_MAX_TIME_TOPIC: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
CHECKPOINT_TOPIC: Final = "CHECKPOINT_TOPIC"
TIMER_TOPIC: Final = "rmq_sys_wheel_timer"

SYSTEM_TOPICS_OF_5: Final = frozenset({CHECKPOINT_TOPIC, ROCKSDB_HALF_TOPIC, ROCKSDB_OP_HALF_TOPIC})
"""Reserved names that the 4.9 line does not know."""
SYSTEM_TOPICS: Final = frozenset(
    {
        AUTO_CREATE_TOPIC,
        SCHEDULE_TOPIC,
        BENCHMARK_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_TOPIC,
        TRACE_TOPIC,
        HALF_TOPIC,
        OP_HALF_TOPIC,
        CHECK_MAX_TIME_TOPIC,
    }
    | SYSTEM_TOPICS_OF_5
)
"""Names that no administrator may create or delete. Each broker adds the topics named after itself and its
cluster."""
UNSENDABLE_TOPICS: Final = (
    SYSTEM_TOPICS - {AUTO_CREATE_TOPIC, BENCHMARK_TOPIC, TRACE_TOPIC, CHECKPOINT_TOPIC}
) | {TIMER_TOPIC}
"""Of them the official broker accepts sends to the timer topic, and to the revive topics (`is_unsendable_topic`): one
such message from a client can stop its timer or its revival."""
REVIVE_PREFIX: Final = f"{SYSTEM_PREFIX}REVIVE_LOG_"

MAX_TOPIC_LENGTH: Final = 127
MAX_RETRY_TOPIC_LENGTH: Final = 255
MAX_GROUP_LENGTH: Final = 120

_LEGAL: Final = re.compile(r"[%|a-zA-Z0-9_-]*")
_LEGAL_TEXT: Final = "contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"

PREDEFINED_GROUPS: Final = frozenset(
    {
        *(
            "DEFAULT_CONSUMER",
            "DEFAULT_PRODUCER",
            "TOOLS_CONSUMER",
            "SCHEDULE_CONSUMER",
            "FILTERSRV_CONSUMER",
        ),
        *("__MONITOR_CONSUMER", "CLIENT_INNER_PRODUCER", "SELF_TEST_P_GROUP", "SELF_TEST_C_GROUP"),
        *("CID_ONS-HTTP-PROXY", "CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER", "CID_ONSAPI_PULL"),
    }
)
"""Groups of tools and of the broker itself (official MixAll.isPredefinedGroup)."""


def retry_topic(group: str) -> str:
    """The topic where messages of a group wait for their next try (official MixAll.getRetryTopic)."""
    return RETRY_PREFIX + group


def dlq_topic(group: str) -> str:
    """The topic of the messages of a group that failed the last try (official MixAll.getDLQTopic)."""
    return DLQ_PREFIX + group


def reply_topic(cluster_name: str) -> str:
    """Topic of the replies of request/reply (official MixAll.getReplyTopic)."""
    return f"{cluster_name}_REPLY_TOPIC"


def revive_topic(cluster_name: str) -> str:
    """Topic of the pop check points and acks (official PopAckConstants.buildClusterReviveTopic)."""
    return REVIVE_PREFIX + cluster_name


def sync_member_topic(broker_name: str) -> str:
    """Registered by every broker of a group so that its members find each other."""
    return f"{SYSTEM_PREFIX}SYNC_BROKER_MEMBER_{broker_name}"


def pop_retry_topic(topic: str, group: str, *, v2: bool = False) -> str:
    """Retry topic of pop consumption (official KeyBuilder). `v2` separates with `+`, which no
    name may contain."""
    return f"{RETRY_PREFIX}{group}{'+' if v2 else '_'}{topic}"


def is_retry_topic(topic: str) -> bool:
    return topic.startswith(RETRY_PREFIX)


def is_dlq_topic(topic: str) -> bool:
    return topic.startswith(DLQ_PREFIX)


def is_system_topic(topic: str) -> bool:
    """Official TopicValidator.isSystemTopic, without the topics that a broker names after itself and its cluster."""
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_PREFIX)


def is_lmq(name: str) -> bool:
    """Light queues and the groups on them; no table lists them."""
    return name.startswith(LMQ_PREFIX)


def is_system_group(group: str) -> bool:
    return group.startswith(SYSTEM_GROUP_PREFIX)


def is_internal_group(group: str) -> bool:
    """A group of a tool or of the broker itself: no user made it."""
    return is_system_group(group) or group in PREDEFINED_GROUPS


def group_of_retry_topic(topic: str) -> str:
    """`%RETRY%g` and `%DLQ%g` to `g`; any other name unchanged."""
    return topic.removeprefix(RETRY_PREFIX) if is_retry_topic(topic) else topic.removeprefix(DLQ_PREFIX)


def topic_refusal(topic: str, *, emulate: int = 5) -> str | None:
    """The official words of that line that refuse a topic name, or None (official TopicValidator.validateTopic).

    The broker answers INVALID_PARAMETER with it, in 4.x SYSTEM_ERROR.
    """
    if not topic or topic.isspace():
        return "The specified topic is blank."
    if _LEGAL.fullmatch(topic) is None:
        return (
            f"The specified topic: {topic}, {_LEGAL_TEXT}"
            if emulate >= 5
            else f"The specified topic {_LEGAL_TEXT}"
        )
    if emulate < 5:
        return (
            "The specified topic is longer than topic max length." if len(topic) > MAX_TOPIC_LENGTH else None
        )
    if is_retry_topic(topic) or is_dlq_topic(topic):
        if len(topic) <= MAX_RETRY_TOPIC_LENGTH:
            return None
        return (
            f"The specified topic is DLQ or Retry topic: {topic}, and it's longer than topic max length: "
            f"{MAX_RETRY_TOPIC_LENGTH}"
        )
    if len(topic) > MAX_TOPIC_LENGTH:
        return f"The specified topic: {topic}, is longer than topic max length: {MAX_TOPIC_LENGTH}"
    return None


def group_refusal(group: str) -> str | None:
    """The official words that refuse a group name, or None (TopicValidator.validateGroup; 4.x checks no group name)."""
    if not group or group.isspace():
        return "The specified group is blank."
    if _LEGAL.fullmatch(group) is None:
        return f"The specified group: {group}, {_LEGAL_TEXT}"
    if len(group) > MAX_GROUP_LENGTH:
        return f"The specified group: {group}, is longer than group max length: {MAX_GROUP_LENGTH}"
    return None


def is_unsendable_topic(topic: str) -> bool:
    """True if a send is refused: NO_PERMISSION `Sending message to topic[T] is forbidden.`"""
    return topic in UNSENDABLE_TOPICS or topic.startswith(REVIVE_PREFIX)
