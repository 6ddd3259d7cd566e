"""The type of a message, which follows from its properties, and the types that a topic accepts.

A client's own `message_type` does not decide: only TRANSACTION has an effect, on the properties. Mirrors
`TopicMessageType` and the system property names of `MessageConst`.
"""

from collections.abc import Mapping
from typing import Final

from pocketmq.protocol.message import properties as names

from ..messages import MessageType

SYSTEM_PROPERTIES: Final = names.NAMES - {
    names.SHARDING_KEY,
    names.TRACE_CONTEXT,
    names.TRANSACTION_ID,
    names.TRANSACTION_CHECK_TIMES,
    names.CHECK_IMMUNITY_TIME_IN_SECONDS,
    names.TRANS_OFFSET,
    names.INNER_NUM,
    names.INNER_BASE,
    names.INNER_MULTI_DISPATCH,
    names.TIMER_ROLL_LABEL,
    names.FORWARD_QUEUE_ID,
    names.REDIRECT,
    names.TRANSIENT_TOPIC_SYS_FLAG,
    names.TRANSIENT_GROUP_SYS_FLAG,
}
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
