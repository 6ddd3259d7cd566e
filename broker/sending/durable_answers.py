"""When a send is answered: once its message is as durable as broker.conf asks.

    ASYNC_FLUSH, ASYNC_MASTER     at once: the log has it
    SYNC_FLUSH                    when the disk has it, or after syncFlushTimeout: FLUSH_DISK_TIMEOUT
    SYNC_MASTER                   when slaves have it, or after slaveTimeout: FLUSH_SLAVE_TIMEOUT
    a message with WAIT=false     at once in any case

The codes of a wait that failed still mean that the message is stored; where both failed, the slaves' code is given.
No more than sendThreadPoolQueueCapacity wait at a time; further sends are refused, SYSTEM_BUSY (`send_checks.py`).
A topic made by this send, or just before, is on disk first: after a crash the messages of a lost topic could not be
found. Mirrors CommitLog.handleDiskFlushAndHA.
"""

from pocketmq.protocol.message import properties as names
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import AppendResult, PutStatus

from ..network.dispatch import HELD, Answer, Call, Held
from .sending import Sending

_CODE_OF_STATUS = {
    PutStatus.FLUSH_DISK_TIMEOUT: ResponseCode.FLUSH_DISK_TIMEOUT,
    PutStatus.FLUSH_SLAVE_TIMEOUT: ResponseCode.FLUSH_SLAVE_TIMEOUT,
    PutStatus.SLAVE_NOT_AVAILABLE: ResponseCode.SLAVE_NOT_AVAILABLE,
}


def answer_when_durable(
    sending: Sending, call: Call, answer: Answer, result: AppendResult, properties: dict[str, str]
) -> Answer | Held:
    """The answer, or HELD if it leaves later. `result` is where the message, or the last of a batch, is stored."""
    store = sending.config.store
    for_disk, for_slaves = store.flush_disk_type == "SYNC_FLUSH", store.broker_role == "SYNC_MASTER"
    if (not for_disk and not for_slaves) or properties.get(names.WAIT, "true").lower() == "false":
        if sending.topics not in sending.tables.unsaved:
            return answer
        sending.waiting_sends += 1
        _answer_when_saved(sending, call, answer)
        return HELD
    sending.waiting_sends += 1
    end = result.position + result.size
    if for_disk:
        _when_on_disk(sending, call, answer, end)
    else:
        _when_at_slaves(sending, call, answer, end)
    return HELD


def _when_on_disk(sending: Sending, call: Call, answer: Answer, end: int) -> None:
    is_answered = False

    def flushed(is_safe: bool) -> None:
        nonlocal is_answered
        if is_answered:
            return
        is_answered = True
        deadline.cancel()
        # Copying to slaves has not waited for the disk: often they have it by now.
        _when_at_slaves(sending, call, answer if is_safe else _but(answer, PutStatus.FLUSH_DISK_TIMEOUT), end)

    def from_flusher(is_safe: bool) -> None:
        loop.call_soon_threadsafe(flushed, is_safe)

    loop = call.connection.loop
    deadline = loop.call_later(sending.config.store.sync_flush_timeout / 1000, flushed, False)
    sending.store.when_flushed(end, from_flusher)


def _when_at_slaves(sending: Sending, call: Call, answer: Answer, end: int) -> None:
    def replicated(is_safe: bool) -> None:
        _answer_when_saved(sending, call, answer if is_safe else _but(answer, PutStatus.FLUSH_SLAVE_TIMEOUT))

    replication = sending.replication
    if replication.copies <= 1:
        replicated(True)
    elif (refusal := replication.refusal()) is not None:
        _answer_when_saved(sending, call, _but(answer, refusal))
    else:
        replication.when_replicated(end, replicated)


def _answer_when_saved(sending: Sending, call: Call, answer: Answer) -> None:
    def saved() -> None:
        sending.waiting_sends -= 1
        call.answer(answer)

    sending.tables.when_saved(sending.topics, saved)


def _but(answer: Answer, status: PutStatus) -> Answer:
    """The message is in the log, but not everywhere it should be."""
    answer.code = _CODE_OF_STATUS[status]
    answer.remark = status.name
    return answer
