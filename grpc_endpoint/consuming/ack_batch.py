"""The acks of one pass of a connection are stored together, then the calls are answered.

    requests of a pass -> add(call, entries, outcomes) ... -> store() at its end -> one append -> replies

An outcome is the status of an entry, or the ack that must be stored before the entry is acknowledged. Acks of messages
that were received together become one record, as when a client acknowledges them in one request of the remoting
protocol. Owned by the event loop.
"""

import logging
from collections.abc import Sequence
from typing import Final

from pocketmq.broker.pop.revive_log import AckedMessage, ReviveLog

from ..calls.rpc_call import RpcCall
from ..messages import (
    OK,
    AckMessageEntry,
    AckMessageResponse,
    AckMessageResultEntry,
    Code,
    Status,
)

_log = logging.getLogger("pocketmq.grpc")

NOT_ACKNOWLEDGED: Final = Status(code=Code.INTERNAL_SERVER_ERROR, message="ack failed: status is abnormal")

_ACKNOWLEDGED: Final = AckMessageResponse(status=OK, entries=[AckMessageResultEntry(status=OK)])

Outcome = Status | AckedMessage


class AckBatch:
    """`store` must follow before the event loop goes on."""

    def __init__(self, log: ReviveLog) -> None:
        self._log = log
        self._gathered: list[tuple[RpcCall, Sequence[AckMessageEntry], Sequence[Outcome]]] = []

    def add(self, call: RpcCall, entries: Sequence[AckMessageEntry], outcomes: Sequence[Outcome]) -> None:
        """Answer this call when its acks are stored."""
        self._gathered.append((call, entries, outcomes))

    def store(self) -> None:
        """Store the acks and answer the calls."""
        if not self._gathered:
            return
        gathered, self._gathered = self._gathered, []
        acks = [one for _, _, outcomes in gathered for one in outcomes if isinstance(one, tuple)]
        found = self._log.put_acks(acks)
        refused = [refusal for refusal in found if refusal is not None]
        if refused:
            _log.info("%d acks are refused, the first: %s", len(refused), refused[0])
        refusals = iter(found)
        for call, entries, outcomes in gathered:
            statuses = [
                (NOT_ACKNOWLEDGED if next(refusals) else OK) if isinstance(one, tuple) else one
                for one in outcomes
            ]
            call.answer(reply_of(entries, statuses))


def reply_of(entries: Sequence[AckMessageEntry], statuses: list[Status]) -> AckMessageResponse:
    """The reply with the status of each entry."""
    reply = AckMessageResponse()
    if statuses == [OK]:  # nearly always: comparing finds it the same object
        reply.CopyFrom(_ACKNOWLEDGED)
        (entry,), (result,) = entries, reply.entries
        result.message_id, result.receipt_handle = entry.message_id, entry.receipt_handle
        return reply
    codes = {status.code for status in statuses}
    code = Code(codes.pop() if len(codes) == 1 else Code.MULTIPLE_RESULTS)
    reply.status.code, reply.status.message = code, code.name
    for entry, status in zip(entries, statuses, strict=True):
        result = reply.entries.add()
        result.status.CopyFrom(status)
        result.message_id, result.receipt_handle = entry.message_id, entry.receipt_handle
    return reply
