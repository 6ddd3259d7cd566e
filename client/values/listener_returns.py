"""What a listener says about its messages: statuses, the context it may change, and how its return is read.

In natural Python a listener that returns nothing has succeeded, and one that raises has not. (Java's null counts as
failed, but there a forgotten return does not compile.) Anything else counts as failed. What a
status leads to is in `delivery/settlement.py` and `delivery/ordered_delivery.py`. Official package:
org.apache.rocketmq.client.consumer.listener.
"""

from enum import Enum, IntEnum
from typing import Final

import msgspec
from pocketmq.protocol.bodies.client_state import CMResult
from pocketmq.protocol.message.message_queue import MessageQueue

ACK_ALL: Final = 2**31 - 1


class ConsumeConcurrentlyStatus(Enum):
    """Answer of a concurrent listener."""

    CONSUME_SUCCESS = "CONSUME_SUCCESS"
    RECONSUME_LATER = "RECONSUME_LATER"


class ConsumeOrderlyStatus(Enum):
    """Answer of an ordered listener. COMMIT and ROLLBACK are for consumers without auto-commit."""

    SUCCESS = "SUCCESS"
    ROLLBACK = "ROLLBACK"
    COMMIT = "COMMIT"
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"


class ConsumeReturnType(IntEnum):
    """How a call ended, for hooks and traces only; the numbers are the trace's contextCode."""

    SUCCESS = 0
    TIME_OUT = 1
    EXCEPTION = 2
    RETURNNULL = 3
    """Also: returned something that is no status."""
    FAILED = 4


class ConsumeConcurrentlyContext(msgspec.Struct):
    """Given to a concurrent listener, which may change the last two."""

    message_queue: MessageQueue
    delay_level_when_next_consume: int = 0
    """-1 dead letters at once, 0 the broker decides by the number of tries, else a delay level."""
    ack_index: int = ACK_ALL
    """Index of the last message done; those after it are tried again. Counts only with CONSUME_SUCCESS."""


class ConsumeOrderlyContext(msgspec.Struct):
    """Given to an ordered listener, which may change the last two."""

    message_queue: MessageQueue
    auto_commit: bool = True
    suspend_current_queue_time_millis: int = -1
    """Pause before the same messages are delivered again; -1 means the consumer's setting."""


ListenerContext = ConsumeConcurrentlyContext | ConsumeOrderlyContext
ListenerStatus = ConsumeConcurrentlyStatus | ConsumeOrderlyStatus

OUTCOMES: Final[dict[type[ListenerContext], tuple[ListenerStatus, ListenerStatus]]] = {
    ConsumeConcurrentlyContext: (
        ConsumeConcurrentlyStatus.CONSUME_SUCCESS,
        ConsumeConcurrentlyStatus.RECONSUME_LATER,
    ),
    ConsumeOrderlyContext: (
        ConsumeOrderlyStatus.SUCCESS,
        ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT,
    ),
}
"""Success and failure of either kind of listener."""


def status_of(returned: object, context: ListenerContext) -> ListenerStatus:
    """The status that the return value of a listener means."""
    success, later = OUTCOMES[type(context)]
    if returned is None:
        return success
    return returned if isinstance(returned, type(success)) else later


def is_unknown_status(returned: object) -> bool:
    """Whether a return has no meaning, which is worth a warning."""
    return returned is not None and not isinstance(returned, ListenerStatus)


def return_type(returned: object, *, raised: bool, took_ms: int, timeout_ms: int) -> ConsumeReturnType:
    """How a call ended, for hooks and traces. A call that took at least `timeout_ms` counts as TIME_OUT."""
    if raised:
        return ConsumeReturnType.EXCEPTION
    if is_unknown_status(returned):
        return ConsumeReturnType.RETURNNULL
    if took_ms >= timeout_ms:
        return ConsumeReturnType.TIME_OUT
    if returned in (
        ConsumeConcurrentlyStatus.RECONSUME_LATER,
        ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT,
    ):
        return ConsumeReturnType.FAILED
    return ConsumeReturnType.SUCCESS


_DIRECT: Final = {
    ConsumeConcurrentlyStatus.CONSUME_SUCCESS: CMResult.CR_SUCCESS,
    ConsumeConcurrentlyStatus.RECONSUME_LATER: CMResult.CR_LATER,
    ConsumeOrderlyStatus.SUCCESS: CMResult.CR_SUCCESS,
    ConsumeOrderlyStatus.COMMIT: CMResult.CR_COMMIT,
    ConsumeOrderlyStatus.ROLLBACK: CMResult.CR_ROLLBACK,
    ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT: CMResult.CR_LATER,
}


def direct_result(returned: object, *, raised: bool) -> CMResult:
    """The consumeResult of the answer to CONSUME_MESSAGE_DIRECTLY."""
    if raised:
        return CMResult.CR_THROW_EXCEPTION
    if returned is None:
        return CMResult.CR_SUCCESS
    if isinstance(returned, ListenerStatus):
        return _DIRECT[returned]
    return CMResult.CR_RETURN_NULL
