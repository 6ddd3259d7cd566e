"""The broker's answers to sends, as entries and status of the reply. Mirrors `SendMessageActivity`."""

from collections.abc import Sequence
from typing import Final

import msgspec
from pocketmq.broker.network.dispatch import Answer
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..calls.refusals import PROXY
from ..messages import OK, Code, SendMessageResponse, SendResultEntry, Status

_STORED: Final = {
    ResponseCode.FLUSH_DISK_TIMEOUT: (Code.MASTER_PERSISTENCE_TIMEOUT, "FLUSH_DISK_TIMEOUT"),
    ResponseCode.FLUSH_SLAVE_TIMEOUT: (Code.SLAVE_PERSISTENCE_TIMEOUT, "FLUSH_SLAVE_TIMEOUT"),
    ResponseCode.SLAVE_NOT_AVAILABLE: (Code.HA_NOT_AVAILABLE, "SLAVE_NOT_AVAILABLE"),
}
"""The message is stored, but not as safely as broker.conf asks."""


class SendResult(msgspec.Struct, frozen=True, gc=False):
    """Of one message. Without an entry the broker did not store it."""

    status: Status
    entry: SendResultEntry | None


def refused(text: str) -> SendResult:
    """The broker refused the message with this remark."""
    return SendResult(Status(code=Code.INTERNAL_SERVER_ERROR, message=PROXY + text), None)


def result_of(answer: Answer, message_id: str) -> SendResult:
    """What the broker answered to a message with this id."""
    fields = answer.fields or {}
    if answer.code == ResponseCode.SUCCESS:
        entry = SendResultEntry(
            status=OK,
            message_id=message_id,
            transaction_id=fields.get("transactionId", ""),
            offset=int(fields.get("queueOffset", 0)),
            recall_handle=fields.get("recallHandle", ""),
        )
        return SendResult(OK, entry)
    stored = _STORED.get(answer.code)  # type: ignore[call-overload]
    if stored is None:
        return refused(answer.remark or "")
    code, name = stored
    status = Status(code=code, message=f"send message failed, sendStatus={name}")
    return SendResult(Status(code=code, message=code.name), SendResultEntry(status=status))


def reply_of(results: Sequence[SendResult]) -> SendMessageResponse:
    """One message that was not stored has no entry; among several each has one."""
    if len(results) == 1:
        result = results[0]
        return SendMessageResponse(
            status=result.status, entries=[] if result.entry is None else [result.entry]
        )
    codes = {result.status.code for result in results}
    code = Code(codes.pop() if len(codes) == 1 else Code.MULTIPLE_RESULTS)
    entries = [result.entry or SendResultEntry(status=result.status) for result in results]
    return SendMessageResponse(status=Status(code=code, message=code.name), entries=entries)
