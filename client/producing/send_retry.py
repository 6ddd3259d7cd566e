"""One attempt of a send: what the connection calls when its reply arrives or does not, and what a failure leads to.

    failure of an attempt              again (sync)              isolate  reachable
    CLIENT: no route or address        yes                       no       yes
    REMOTING: no connection, timeout   yes                       yes      yes; with the detector on, no
    BROKER: an error response          codes in the retry set    yes      no

`send_nowait` repeats only after REMOTING failures (never after an error response, whatever its code), while time is
left; 4.9 gives each attempt the full time and does not look at what is left. One-way sends and awaited sends to a given
queue get one attempt. A send that was written has no task and one future: the reply to a send of a template is read in
one step (`stored`), any other by its sender (`replied`). Choosing the queue of an attempt is in `queue_choice.py`.
Official: DefaultMQProducerImpl.sendDefaultImpl, MQClientAPIImpl.onExceptionImpl.
"""

import asyncio
from collections.abc import Collection
from enum import Enum
from typing import Any, Final

from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.send import SendMessageReply, SendMessageV2
from pocketmq.protocol.requests.send_frames import StoredFields, StoredReply
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.schema import Request

from ..clock import steady_ms
from ..connections.connection import Connection
from ..errors import (
    CallTimeout,
    ClientError,
    NotReachable,
    RequestRefused,
    SendBufferFull,
    SendFailed,
    SendTimedOut,
    TooManyCalls,
    UnreadableReply,
)
from ..instance.instance import ClientInstance
from ..settings.producer_settings import ProducerSettings
from ..values.namespaces import Namespace
from ..values.results import DEFAULT_REGION, SEND_STATUS, SendResult, SendStatus
from .outgoing import Outgoing
from .queue_choice import LatencyFaultTolerance

CONNECT_BROKER_EXCEPTION: Final = 10001
ACCESS_BROKER_TIMEOUT: Final = 10002
BROKER_NOT_EXIST_EXCEPTION: Final = 10003
NO_NAME_SERVER_EXCEPTION: Final = 10004
NOT_FOUND_TOPIC_EXCEPTION: Final = 10005
NO_CODE: Final = -1


class Failure(Enum):
    """Kind of a failed attempt."""

    CLIENT = "client"
    """No route or no address."""
    CONNECT = "connect"
    """REMOTING: no connection."""
    TIMEOUT = "timeout"
    """REMOTING: no answer in time."""
    SEND = "send"
    """REMOTING: anything else, such as a connection that broke."""
    BROKER = "broker"
    """An error response."""


_REMOTING: Final = frozenset({Failure.CONNECT, Failure.TIMEOUT, Failure.SEND})
_FINAL_CODES: Final[dict[Failure | None, int]] = {
    Failure.CONNECT: CONNECT_BROKER_EXCEPTION,
    Failure.TIMEOUT: ACCESS_BROKER_TIMEOUT,
    Failure.CLIENT: BROKER_NOT_EXIST_EXCEPTION,
}


def is_async_repeated(failure: Failure, *, retries_done: int, retry_times: int, left_ms: int) -> bool:
    """Whether a failed attempt of an asynchronous send is repeated. `retries_done`: repeats before this attempt."""
    return failure in _REMOTING and retries_done < retry_times and left_ms > 0


def send_failed(failure: Failure | None, error: Exception, code: int = NO_CODE, text: str = "") -> SendFailed:
    """The error that ends a send; `error` is what its last attempt failed with, `text` what the call has to add,
    `code` that of an error response."""
    kind = SendTimedOut if failure is Failure.TIMEOUT else SendFailed
    if isinstance(error, TooManyCalls):
        kind = SendBufferFull
    retriable = isinstance(error, ClientError) and error.retriable
    final = code if failure is Failure.BROKER else _FINAL_CODES.get(failure, NO_CODE)
    failed = kind(final, f"{text}; {error}" if text else str(error), retriable=retriable)
    failed.__cause__ = error
    return failed


def send_timed_out(text: str) -> SendTimedOut:
    """The error of a send whose time is over before anything was sent."""
    return SendTimedOut(ACCESS_BROKER_TIMEOUT, text)


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

    def is_retried(self, retry_response_codes: Collection[int]) -> bool:
        """Whether an awaited send tries another queue, while attempts are left."""
        return self.kind is not Failure.BROKER or self.code in retry_response_codes

    @property
    def isolates(self) -> bool:
        """Whether the broker is avoided for a while (`LatencyFaultTolerance.update`)."""
        return self.kind is not Failure.CLIENT

    def leaves_reachable(self, *, has_detector: bool) -> bool:
        """Whether the broker counts as reachable; if not, an answer or the detector makes it so again."""
        return not self.isolates or (self.kind is not Failure.BROKER and not has_detector)


class SendOutcomes:
    """What became of the attempts of one sender: the results in replies, and in the fault table how brokers behaved."""

    def __init__(self, instance: ClientInstance, settings: ProducerSettings, namespace: Namespace) -> None:
        self.loop = instance.loop
        self._connections = instance.connections
        self._namespace = namespace
        self.renames_queues = bool(namespace.name)
        self._has_detector = settings.start_detector_enable
        self.faults: LatencyFaultTolerance | None = None
        """None without fault tolerance."""
        if settings.is_fault_tolerant:
            self.faults = LatencyFaultTolerance(steady_ms, settings)

    def attempt_begins(self) -> int:
        """Now, for the fault table; 0 without one."""
        return 0 if self.faults is None else steady_ms()

    def note_success(self, queue: MessageQueue, began: int) -> None:
        """The fault table learns that the broker answered."""
        if self.faults is not None:
            self.faults.update(queue.broker_name, steady_ms() - began, isolate=False, reachable=True)

    def note_failure(
        self, kind: Failure, error: Exception, queue: MessageQueue, began: int, code: int = -1
    ) -> AttemptFailed:
        """The fault table learns that it did not, or refused."""
        failed = AttemptFailed(kind, error, code)
        if self.faults is not None:
            reachable = failed.leaves_reachable(has_detector=self._has_detector)
            took_ms = steady_ms() - began
            self.faults.update(queue.broker_name, took_ms, isolate=failed.isolates, reachable=reachable)
        return failed

    def read(self, send: "PostedSend", reply: Command) -> SendResult:
        """The result in a reply, or `AttemptFailed`."""
        outgoing, queue, began_ms = send.outgoing, send.chosen, send.began_ms
        status = SEND_STATUS.get(reply.code)
        if status is None:
            if reply.code == ResponseCode.GO_AWAY:
                self._connections.leave(send.connection)
            refusal = RequestRefused(reply.code, reply.remark or "", SendMessageV2.name)
            raise self.note_failure(Failure.BROKER, refusal, queue, began_ms, reply.code)
        self.note_success(queue, began_ms)
        try:
            fields = Connection.read_fields(SendMessageReply, reply, SendMessageV2.name)
        except UnreadableReply as error:
            raise self.note_failure(Failure.SEND, error, queue, began_ms) from error
        if fields.queue_id != queue.queue_id or queue.topic != outgoing.topic or self.renames_queues:
            queue = MessageQueue(self._namespace.unwrap(outgoing.topic), queue.broker_name, fields.queue_id)
        return result_of(fields, outgoing, queue, status, fields.trace_on is not False)


class PostedSend:
    """`result` gets the `SendResult`, `AttemptFailed`, or what a hook on requests raised.

    `began_ms` counts only for a fault-tolerant producer. `due` is loop time.
    """

    __slots__ = (
        "began_ms",
        "chosen",
        "connection",
        "due",
        "outcomes",
        "outgoing",
        "request",
        "result",
        "timeout_seconds",
    )

    request: Request[Any]

    def __init__(
        self,
        outcomes: SendOutcomes,
        outgoing: Outgoing,
        chosen: MessageQueue,
        connection: Connection,
        due: float,
        result: asyncio.Future[SendResult] | None = None,
    ) -> None:
        loop = outcomes.loop
        self.outcomes = outcomes
        self.outgoing = outgoing
        self.chosen = chosen
        self.connection = connection
        self.due = due
        self.timeout_seconds = due - loop.time()
        self.began_ms = outcomes.attempt_begins()
        self.result: asyncio.Future[SendResult] = loop.create_future() if result is None else result

    def stored(self, reply: StoredReply) -> bool:
        """Fast path for a stored message. Returns False if the full parser is needed."""
        fields, chosen, outcomes = reply.fields, self.chosen, self.outcomes
        outgoing = self.outgoing
        if (
            fields.queue_id != chosen.queue_id
            or outcomes.renames_queues
            or chosen.topic != outgoing.topic
            or self.result.done()
        ):
            return False
        self.ended()
        outcomes.note_success(chosen, self.began_ms)
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
            stored = self.outcomes.read(self, reply)
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
        self.result.set_exception(self.outcomes.note_failure(kind, error, self.chosen, self.began_ms))


def result_of(
    fields: SendMessageReply | StoredFields,
    outgoing: Outgoing,
    queue: MessageQueue,
    status: SendStatus,
    trace_on: bool,
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
