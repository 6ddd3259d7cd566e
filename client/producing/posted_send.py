"""One send that was written: what the connection calls when its reply arrives, or does not. No task, one future.

    PostedSend   the reply becomes a `SendResult`, a failure an `AttemptFailed`: its sender decides what follows

The reply to a send of a template is read in one step (`stored`), any other by its sender (`replied`).
"""

import asyncio
from typing import Any, Protocol

from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.send_frames import StoredReply
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.schema import Request

from ..connections.connection import Connection
from ..errors import CallTimeout, NotReachable, SendFailed
from ..values.results import DEFAULT_REGION, SendResult, SendStatus
from .outgoing import Outgoing
from .send_retry import Failure, send_failed


class AttemptFailed(Exception):
    """One attempt did not store the message; `kind` decides what follows. Never raised to the user."""

    def __init__(self, kind: Failure, error: Exception, code: int = -1) -> None:
        super().__init__(str(error))
        self.kind = kind
        self.error = error
        self.code = code

    def as_send_failed(self, text: str = "") -> SendFailed:
        """What the user gets if this was the last attempt."""
        return send_failed(self.kind, self.error, self.code, text)


class SendObserver(Protocol):
    """What a posted send needs of its sender."""

    renames_queues: bool
    loop: asyncio.AbstractEventLoop

    def attempt_begins(self) -> int:
        """Now, for the fault table."""
        ...

    def note_success(self, queue: MessageQueue, began: int) -> None:
        """The broker answered."""
        ...

    def note_failure(
        self, kind: Failure, error: Exception, queue: MessageQueue, began: int, code: int = -1
    ) -> AttemptFailed:
        """It did not, or refused."""
        ...

    def read(self, send: "PostedSend", reply: Command) -> SendResult:
        """The result in a reply, or `AttemptFailed`."""
        ...


class PostedSend:
    """`result` gets the `SendResult`, `AttemptFailed`, or what a hook on requests raised.

    `began_ms` counts only for a fault-tolerant producer. `due` is loop time.
    """

    __slots__ = (
        "began_ms",
        "chosen",
        "connection",
        "due",
        "observer",
        "outgoing",
        "request",
        "result",
        "timeout_seconds",
    )

    request: Request[Any]

    def __init__(
        self,
        observer: SendObserver,
        outgoing: Outgoing,
        chosen: MessageQueue,
        connection: Connection,
        due: float,
        result: asyncio.Future[SendResult] | None = None,
    ) -> None:
        loop = observer.loop
        self.observer = observer
        self.outgoing = outgoing
        self.chosen = chosen
        self.connection = connection
        self.due = due
        self.timeout_seconds = due - loop.time()
        self.began_ms = observer.attempt_begins()
        self.result: asyncio.Future[SendResult] = loop.create_future() if result is None else result

    def stored(self, reply: StoredReply) -> bool:
        """Fast path for a stored message. Returns False if the full parser is needed."""
        fields, chosen, observer = reply.fields, self.chosen, self.observer
        outgoing = self.outgoing
        if (
            fields.queue_id != chosen.queue_id
            or observer.renames_queues
            or chosen.topic != outgoing.topic
            or self.result.done()
        ):
            return False
        self.ended()
        observer.note_success(chosen, self.began_ms)
        trace_on = fields.trace_on != "false"
        self.result.set_result(result_of(fields, outgoing, chosen, SendStatus.SEND_OK, trace_on))
        return True

    def replied(self, reply: Command) -> None:
        """The broker answered: the result, or its refusal."""
        self.ended()
        result = self.result
        if result.done():
            return
        try:
            stored = self.observer.read(self, reply)
        except AttemptFailed as failed:
            self.refused(failed)
        else:
            result.set_result(stored)

    def failed(self, error: Exception) -> None:
        """The broker did not answer. What a hook raised is final."""
        self.ended()
        if self.result.done():
            return
        if not isinstance(error, NotReachable):
            self.result.set_exception(error)
            return
        kind = Failure.TIMEOUT if isinstance(error, CallTimeout) else Failure.SEND
        self.unanswered(kind, error)

    # -- what an awaited send does; a send whose future the user holds does otherwise

    def ended(self) -> None:
        """Called once, before anything else happens."""

    def refused(self, failed: AttemptFailed) -> None:
        """The broker refused the message."""
        self.result.set_exception(failed)

    def unanswered(self, kind: Failure, error: Exception) -> None:
        """There is no reply."""
        self.result.set_exception(self.observer.note_failure(kind, error, self.chosen, self.began_ms))


class _StoredFields(Protocol):
    """What both readers of a reply find in it."""

    @property
    def msg_id(self) -> str: ...
    @property
    def queue_offset(self) -> int: ...
    @property
    def transaction_id(self) -> str | None: ...
    @property
    def batch_uniq_id(self) -> str | None: ...
    @property
    def recall_handle(self) -> str | None: ...
    @property
    def msg_region(self) -> str | None: ...


def result_of(
    fields: _StoredFields, outgoing: Outgoing, queue: MessageQueue, status: SendStatus, trace_on: bool
) -> SendResult:
    """The result of a message that was stored in `queue`."""
    return SendResult(
        fields.batch_uniq_id or outgoing.message_id,
        fields.msg_id,
        queue,
        fields.queue_offset,
        status,
        fields.transaction_id,
        fields.msg_region or DEFAULT_REGION,
        trace_on,
        fields.recall_handle,
    )
