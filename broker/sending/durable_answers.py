"""The answer to a send, sent once the message is as durable as broker.conf asks.

    ASYNC_FLUSH, ASYNC_MASTER     at once: the message is in the log
    SYNC_FLUSH                    when the message is on disk, or after syncFlushTimeout: FLUSH_DISK_TIMEOUT
    SYNC_MASTER                   when enough slaves have it, or after slaveTimeout: FLUSH_SLAVE_TIMEOUT
    a message with WAIT=false     at once in any case

These two codes still mean that the message is stored; if both waits fail, the answer has the slaves' code.
At most sendThreadPoolQueueCapacity sends wait at a time; further sends are refused with SYSTEM_BUSY (`send_checks.py`).
If the send created its topic, or another send did so just before, the topic table is written before the answer: after
a crash the messages of a lost topic could not be found.
"""

from collections.abc import Callable
from typing import Final

from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import PutStatus

from ..network.dispatch import HELD, Answer, Call, Held
from .sending import Sending

_WAITS: Final = f"{names.WAIT}\x01true".encode()
_CODE_OF_STATUS = {
    PutStatus.FLUSH_DISK_TIMEOUT: ResponseCode.FLUSH_DISK_TIMEOUT,
    PutStatus.FLUSH_SLAVE_TIMEOUT: ResponseCode.FLUSH_SLAVE_TIMEOUT,
    PutStatus.SLAVE_NOT_AVAILABLE: ResponseCode.SLAVE_NOT_AVAILABLE,
}


def has_to_wait(sending: Sending, text: bytes) -> bool:
    """Whether the answer to a send with these properties waits for disk or slaves."""
    if not sending.durable_log.is_awaited:
        return False
    return _WAITS in text or decode_properties(text).get(names.WAIT, "true").lower() != "false"


def answer_when_durable(sending: Sending, call: Call, answer: Answer, end: int, text: bytes) -> Answer | Held:
    """The answer, or HELD if it is sent later. `end` is the log position behind what was stored, `text` has the
    properties of the send."""
    is_waiting = has_to_wait(sending, text)
    if not is_waiting and sending.topics not in sending.tables.unsaved:
        return answer

    def finish(failure: PutStatus | None) -> None:
        call.answer(answer if failure is None else set_status(answer, failure))

    call_when_answerable(sending, 1, end if is_waiting else None, finish)
    return HELD


def call_when_answerable(
    sending: Sending, sends: int, end: int | None, callback: Callable[[PutStatus | None], None]
) -> None:
    """Call back once the topic table is saved, and disk and slaves have the log up to `end`: with None, or with what
    went wrong. Without an `end`, neither disk nor slaves are waited for. Until then so many sends count as waiting."""
    sending.waiting_sends += sends

    def wait_for_table(failure: PutStatus | None) -> None:
        def finish(_: bool) -> None:
            sending.waiting_sends -= sends
            callback(failure)

        sending.tables.call_when_saved(sending.topics, finish)

    if end is None:
        wait_for_table(None)
    else:
        sending.durable_log.call_when_durable(end, wait_for_table)


def set_status(answer: Answer, status: PutStatus) -> Answer:
    """An answer for a message that is in the log, but not on disk or not on enough slaves."""
    answer.code = _CODE_OF_STATUS[status]
    answer.remark = status.name
    return answer


def send_answer(
    sending: Sending, queue_offset: int, message_ids: str, queue_id: int, unique_id: bytes | None
) -> Answer:
    """The reply to a send whose first message got this offset."""
    # A plain dict instead of a SendMessageReply: the broker sends no answer more often.
    fields = {
        "msgId": message_ids,
        "queueId": str(queue_id),
        "queueOffset": str(queue_offset),
        "MSG_REGION": sending.config.region_id,
        "TRACE_ON": "true" if sending.config.trace_on else "false",
    }
    if unique_id is not None and sending.is_5:
        fields["transactionId"] = unique_id.decode("utf-8", "replace")
    return Answer(fields=fields)
