"""The type of a message, which follows from its properties, and the types that a topic accepts.

A client's own `message_type` does not decide: only TRANSACTION has an effect, on the properties. Mirrors
`TopicMessageType` and the system property names of `MessageConst`.
"""

from collections.abc import Mapping
from typing import Final

from pocketmq.protocol.message import properties as names

from ..messages import MessageType

SYSTEM_PROPERTIES: Final = frozenset(
    {
        names.TRACE_ON,
        names.MSG_REGION,
        names.KEYS,
        names.TAGS,
        names.WAIT,
        names.DELAY,
        names.RETRY_TOPIC,
        names.ORIGIN_GROUP,
        names.REAL_TOPIC,
        names.REAL_QID,
        names.TRAN_MSG,
        names.PGROUP,
        names.MIN_OFFSET,
        names.MAX_OFFSET,
        names.BUYER_ID,
        names.ORIGIN_MESSAGE_ID,
        names.TRANSFER_FLAG,
        names.CORRECTION_FLAG,
        names.MQ2_FLAG,
        names.RECONSUME_TIME,
        names.UNIQ_KEY,
        names.MAX_RECONSUME_TIMES,
        names.CONSUME_START_TIME,
        names.POP_CK,
        names.POP_CK_OFFSET,
        names.FIRST_POP_TIME,
        names.TRANSACTION_PREPARED_QUEUE_OFFSET,
        names.DUP_INFO,
        names.EXTEND_UNIQ_INFO,
        names.INSTANCE_ID,
        names.CORRELATION_ID,
        names.REPLY_TO_CLIENT,
        names.TTL,
        names.ARRIVE_TIME,
        names.PUSH_REPLY_TIME,
        names.CLUSTER,
        names.MSG_TYPE,
        names.INNER_MULTI_QUEUE_OFFSET,
        names.TIMER_DELAY_MS,
        names.TIMER_DELAY_SEC,
        names.TIMER_DELIVER_MS,
        names.TIMER_ENQUEUE_MS,
        names.TIMER_DEQUEUE_MS,
        names.TIMER_ROLL_TIMES,
        names.TIMER_OUT_MS,
        names.TIMER_DEL_UNIQKEY,
        names.TIMER_DELAY_LEVEL,
        names.BORN_HOST,
        names.BORN_TIMESTAMP,
        names.DLQ_ORIGIN_TOPIC,
        names.DLQ_ORIGIN_MESSAGE_ID,
        names.CRC32,
        names.PRIORITY,
        names.LITE_TOPIC,
    }
)
"""Names that a client may not give its own properties, and that are not among the properties it receives."""
assert len(SYSTEM_PROPERTIES) == 54

_MARKS: Final = (
    (names.DELAY, "DELAY"),
    (names.TIMER_DELIVER_MS, "DELAY"),
    (names.TIMER_DELAY_SEC, "DELAY"),
    (names.TIMER_DELAY_MS, "DELAY"),
    (names.SHARDING_KEY, "FIFO"),
    (names.PRIORITY, "PRIORITY"),
    (names.LITE_TOPIC, "LITE"),
)
MIXED: Final = "MIXED"
_ACCEPTED: Final = {
    "NORMAL": (MessageType.NORMAL,),
    "FIFO": (MessageType.FIFO,),
    "DELAY": (MessageType.DELAY,),
    "TRANSACTION": (MessageType.TRANSACTION,),
    "PRIORITY": (MessageType.PRIORITY,),
    "LITE": (MessageType.LITE,),
    MIXED: (MessageType.NORMAL, MessageType.FIFO, MessageType.DELAY, MessageType.TRANSACTION),
}


def type_of(properties: Mapping[str, str]) -> str:
    """The type of a message with these properties, by its name."""
    if properties.get(names.TRAN_MSG) == "true":
        return "TRANSACTION"
    for name, kind in _MARKS:
        if name in properties:
            return kind
    return "NORMAL"


def accepted_types(topic_type: str | None) -> list[MessageType]:
    """What a topic of this type accepts; `None` is a topic that the broker does not have."""
    if topic_type is None:
        return [MessageType.MESSAGE_TYPE_UNSPECIFIED]
    return list(_ACCEPTED.get(topic_type, (MessageType.MESSAGE_TYPE_UNSPECIFIED,)))
