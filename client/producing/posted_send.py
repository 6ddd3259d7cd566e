"""One send that was written: what the connection calls when its reply arrives, or does not. No task, one future.

    PostedSend   the reply becomes a `SendResult`, a failure an `AttemptFailed`: its sender decides what follows

The reply to a send of a template is read in one step (`stored`), any other by its sender (`replied`).
"""

import asyncio
import logging
from typing import Any, Protocol

from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.send_frames import StoredReply
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.schema import Request

from ..connections.connection import SHORT_WAIT_SECONDS, Connection
from ..errors import CallTimeout, NotReachable, SendFailed
from ..values.results import DEFAULT_REGION, SendResult, SendStatus
from .outgoing import Outgoing
from .send_retry import Failure, send_failed

_log = logging.getLogger(__name__)


class AttemptFailed(Exception):
    """One attempt did not store the message; `kind` decides what follows. It never leaves this room."""

    def __init__(self, kind: Failure, error: Exception, code: int = -1) -> None:
        super().__init__(str(error))
        self.kind = kind
        self.error = error
        self.code = code

    def as_send_failed(self, text: str = "") -> SendFailed:
        """What the user gets if this was the last attempt."""
        return send_failed(self.kind, self.error, self.code, text)


class Attempts(Protocol):
    """What a posted send needs of its sender."""

    renames_queues: bool

    def note_success(self, queue: MessageQueue, began: int) -> None:
        """The broker answered."""
        ...

    def note_failure(
        self, kind: Failure, error: Exception, queue: MessageQueue, began: int, code: int = -1
    ) -> AttemptFailed:
        """It did not, or refused."""
        ...

    def read(
        self, outgoing: Outgoing, queue: MessageQueue, connection: Connection, command: Command, began: int
    ) -> SendResult:
        """The result in a reply, or `AttemptFailed`."""
        ...


class PostedSend:
    """`result` gets the `SendResult`, `AttemptFailed`, or what a hook on requests raised.

    `began_ms` counts only for a fault-tolerant producer. Times of `due` are loop time.
    """

    __slots__ = (
        "attempts",
        "began_ms",
        "chosen",
        "connection",
        "due",
        "outgoing",
        "request",
        "result",
        "timeout_seconds",
    )

    request: Request[Any]

    def __init__(
        self,
        attempts: Attempts,
        outgoing: Outgoing,
        chosen: MessageQueue,
        connection: Connection,
        loop: asyncio.AbstractEventLoop,
        timeout_seconds: float,
        began_ms: int,
    ) -> None:
        self.attempts = attempts
        self.outgoing = outgoing
        self.chosen = chosen
        self.connection = connection
        self.timeout_seconds = timeout_seconds
        self.due = loop.time() + timeout_seconds
        self.began_ms = began_ms
        self.result: asyncio.Future[SendResult] = loop.create_future()

    @property
    def waiter(self) -> "PostedSend":
        """Itself."""
        return self

    def stored(self, reply: StoredReply) -> bool:
        """The quick road of `replied`. False if the reply needs the ordinary one."""
        fields, chosen, attempts = reply.fields, self.chosen, self.attempts
        outgoing = self.outgoing
        if (
            fields.queue_id != chosen.queue_id
            or attempts.renames_queues
            or chosen.topic != outgoing.topic
            or self.result.done()
        ):
            return False
        self.ended()
        attempts.note_success(chosen, self.began_ms)
        self.result.set_result(
            SendResult(
                fields.batch_uniq_id or outgoing.message_id,
                fields.msg_id,
                chosen,
                fields.queue_offset,
                SendStatus.SEND_OK,
                fields.transaction_id,
                fields.msg_region or DEFAULT_REGION,
                fields.trace_on != "false",
                fields.recall_handle,
            )
        )
        return True

    def replied(self, reply: Command) -> None:
        """The broker answered: the result, or its refusal."""
        self.ended()
        result = self.result
        if result.done():
            return
        try:
            stored = self.attempts.read(self.outgoing, self.chosen, self.connection, reply, self.began_ms)
        except AttemptFailed as failed:
            self.refused(failed)
        else:
            result.set_result(stored)

    def failed(self, error: Exception) -> None:
        """The broker did not answer. What a hook raised is final."""
        self.ended()
        if isinstance(error, CallTimeout) and self.closes_connection:
            _log.warning("a send timed out, giving up the connection to %s", self.connection.address)
            self.connection.close()
        if self.result.done():
            return
        if not isinstance(error, NotReachable):
            self.result.set_exception(error)
            return
        kind = Failure.TIMEOUT if isinstance(error, CallTimeout) else Failure.SEND
        self.unanswered(kind, error)

    # -- what an awaited send does; a send whose future the user holds does otherwise

    @property
    def closes_connection(self) -> bool:
        """As in Java, a timeout ends the connection (clientCloseSocketIfTimeout)."""
        return self.timeout_seconds > SHORT_WAIT_SECONDS

    def ended(self) -> None:
        """Called once, before anything else happens."""

    def refused(self, failed: AttemptFailed) -> None:
        """The broker refused the message."""
        self.result.set_exception(failed)

    def unanswered(self, kind: Failure, error: Exception) -> None:
        """There is no reply."""
        self.result.set_exception(self.attempts.note_failure(kind, error, self.chosen, self.began_ms))
