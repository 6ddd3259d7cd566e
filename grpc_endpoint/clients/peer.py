"""One gRPC client as the broker sees it, and what the broker asks it: commands on the client's telemetry stream.

    309 consume a message now   verify_message_command            verify_message_result -> the result of the listener
    307 the state of a client   print_thread_stack_trace_command  thread_stack_trace -> its threads
    39  check a transaction     recover_orphaned_transaction_command   the client ends the transaction, or does not

307 without jstack is answered here, from what the client announced; the official proxy lets the tool wait in vain.
Everything else that a broker says to its clients (40, 220, 221) has no form in gRPC and is dropped. A command and its
answer share a nonce.

A client has one peer, made by its first registration, whatever the number of its connections; a client that has not
registered gets one for the length of a call. Mirrors `GrpcClientChannel` and `RelayData`.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec
from pocketmq.broker.broker import Broker
from pocketmq.broker.errors import PeerError
from pocketmq.protocol.bodies.body import Body
from pocketmq.protocol.bodies.client_state import CMResult, ConsumeMessageDirectlyResult, ConsumerRunningInfo
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.languages import V5_5_0, version_name
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import Record, decode_record
from pocketmq.protocol.requests.send import CheckTransactionState
from pocketmq.protocol.requests.to_client import ConsumeMessageDirectly, GetConsumerRunningInfo
from pocketmq.protocol.wire.command import ONEWAY_FLAG, RESPONSE_FLAG, Command, RawBody
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.schema import Request, to_fields

from ..calls.rpc_call import RpcCall
from ..conversion.received_message import set_message
from ..messages import (
    Code,
    PrintThreadStackTraceCommand,
    RecoverOrphanedTransactionCommand,
    TelemetryCommand,
    VerifyMessageCommand,
)
from .open_transactions import OpenTransactions

if TYPE_CHECKING:
    from pocketmq.broker.network.dispatch import Result

_log = logging.getLogger("pocketmq.grpc")

LONGEST_SHOWN: Final = 255
"""Characters of a client id in the log."""
MAX_WAITING: Final = 1000
"""Questions without an answer at once; one more is not asked."""
_RESULTS: Final[dict[int, CMResult]] = {
    Code.OK: CMResult.CR_SUCCESS,
    Code.FAILED_TO_CONSUME_MESSAGE: CMResult.CR_LATER,
    Code.MESSAGE_CORRUPTED: CMResult.CR_RETURN_NULL,
}


class GrpcPeer(msgspec.Struct, eq=False):
    """Owned by the event loop. `stream` is the telemetry stream on which the client last sent settings."""

    loop: asyncio.AbstractEventLoop
    client_id: str
    language: str
    peer: str
    packed_host: bytes
    _commands: "ClientCommands"
    _on_close: Callable[["GrpcPeer"], None]
    closed: bool = False
    """Whether the client is gone: it said so, or it was silent for too long."""
    seen_ms: int = 0
    """When it last sent settings or a heartbeat, by the wall's time."""
    stream: RpcCall | None = None

    def __repr__(self) -> str:
        return f"{self.client_id[:LONGEST_SHOWN]}@{self.peer}"

    @property
    def is_reachable(self) -> bool:
        """Whether a command can be sent now."""
        return self.stream is not None and not self.stream.cancelled

    def command(self, command: TelemetryCommand, shown: Command) -> bool:
        """Send a command on the telemetry stream; False without one. `shown` is the broker's request."""
        if self.stream is None or self.stream.cancelled:
            return False
        self.stream.command(command, shown)
        return True

    def answer(self, command: Command, result: "Result") -> None:
        """No request arrives here: a `BrokerCall` answers its own function."""
        raise AssertionError(f"no request of {self.client_id} waits for an answer here")

    def at_pass_end(self, complete: Callable[[], None]) -> None:
        complete()

    async def exchange(
        self, request: Request[Any], body: RawBody | None = None, *, timeout_seconds: float
    ) -> Command:
        """Ask the client. `PeerError` if it does not answer, or if gRPC has no such question."""
        if self.closed:
            raise PeerError(f"{self.client_id} is gone")
        return await self._commands.exchange(self, request, body, timeout_seconds)

    def notify(self, request: Request[Any], body: RawBody | None = None) -> None:
        """Pass a one-way request on; one that gRPC clients do not have is dropped."""
        if not self.closed:
            self._commands.notify(self, request, body)

    def close(self) -> None:
        """The broker drops the client, because it was silent for too long."""
        if not self.closed:
            self.closed = True
            self.loop.call_soon(self._on_close, self)


class ClientCommands:
    """Of all clients: a nonce is unique in the endpoint. Owned by the event loop."""

    def __init__(self, broker: Broker, transactions: OpenTransactions) -> None:
        self._membership = broker.membership
        self._clock = broker.clock
        self._transactions = transactions
        config = broker.config.endpoint
        self._seconds = config.grpc_proxy_relay_request_timeout_in_seconds
        self._is_strict = config.grpc_strict
        self._nonce = 0
        self._waiting: dict[str, asyncio.Future[TelemetryCommand]] = {}

    async def exchange(
        self, peer: GrpcPeer, request: Request[Any], body: RawBody | None, timeout_seconds: float
    ) -> Command:
        """Raises `PeerError` for a question that gRPC clients are not asked."""
        if isinstance(request, ConsumeMessageDirectly):
            return await self._consume_directly(peer, request, body)
        if isinstance(request, GetConsumerRunningInfo):
            if request.jstack_enable:
                return await self._threads(peer, request)
            if not self._is_strict:
                return _reply(body=self._running_info(request.consumer_group, None))
        raise PeerError(f"{peer.client_id} is a gRPC client, which cannot be asked {request.name}")

    def notify(self, peer: GrpcPeer, request: Request[Any], body: RawBody | None) -> None:
        """Pass the check of a transaction on; drop everything else."""
        if not isinstance(request, CheckTransactionState):
            return
        try:
            half = decode_record(body or b"")
        except BodyError as error:
            _log.error("cannot ask %r about a transaction: %s", peer, error)
            return
        properties = decode_properties(half.properties)
        transaction_id = request.transaction_id or properties.get(names.UNIQ_KEY, "")
        self._transactions.remember(
            half.topic, transaction_id, request.tran_state_table_offset, request.commit_log_offset
        )
        orphan = RecoverOrphanedTransactionCommand(transaction_id=transaction_id)
        set_message(orphan.message, half, half.topic, self._clock.now_ms(), properties)
        shown = _shown(request, body, ONEWAY_FLAG)
        if not peer.command(TelemetryCommand(recover_orphaned_transaction_command=orphan), shown):
            _log.warning("%r has no telemetry stream: its transaction is checked later", peer)

    def on_answer(self, nonce: str, command: TelemetryCommand) -> None:
        """The client's answer; dropped if nobody waits for it."""
        future = self._waiting.get(nonce)
        if future is not None and not future.done():
            future.set_result(command)

    # -- the two questions with an answer

    async def _consume_directly(
        self, peer: GrpcPeer, request: ConsumeMessageDirectly, body: RawBody | None
    ) -> Command:
        record: Record = decode_record(body or b"")
        nonce = self._next_nonce()
        verify = VerifyMessageCommand(nonce=nonce)
        properties = decode_properties(record.properties)
        set_message(verify.message, record, record.topic, self._clock.now_ms(), properties)
        question = TelemetryCommand(verify_message_command=verify)
        answer = await self._ask(peer, nonce, question, _shown(request, body))
        if answer is None:
            return _reply(ResponseCode.SYSTEM_BUSY, "call remote timeout")
        result = ConsumeMessageDirectlyResult(
            consume_result=_RESULTS.get(answer.status.code), remark="from gRPC client", auto_commit=True
        )
        return _reply(body=result)

    async def _threads(self, peer: GrpcPeer, request: GetConsumerRunningInfo) -> Command:
        nonce = self._next_nonce()
        question = TelemetryCommand(
            print_thread_stack_trace_command=PrintThreadStackTraceCommand(nonce=nonce)
        )
        answer = await self._ask(peer, nonce, question, _shown(request, None))
        if answer is None:
            return _reply(ResponseCode.SYSTEM_BUSY, "call remote timeout")
        code, text = answer.status.code, answer.status.message
        if code == Code.VERIFY_FIFO_MESSAGE_UNSUPPORTED:
            return _reply(ResponseCode.NO_PERMISSION, text)
        if code != Code.OK or not answer.HasField("thread_stack_trace"):
            return _reply(ResponseCode.SYSTEM_ERROR, text)
        trace = answer.thread_stack_trace
        threads = trace.thread_stack_trace if trace.HasField("thread_stack_trace") else None
        return _reply(body=self._running_info(request.consumer_group, threads))

    def _running_info(self, group: str, jstack: str | None) -> ConsumerRunningInfo:
        """What the server knows of the consumer; the official proxy answers the threads alone."""
        known = self._membership.consumers.get(group)
        if known is None or self._is_strict:
            return ConsumerRunningInfo(jstack=jstack)
        return ConsumerRunningInfo(
            properties={
                "PROP_CLIENT_VERSION": version_name(V5_5_0),
                "PROP_CONSUME_TYPE": known.consume_type or "",
            },
            subscription_set=list(known.subscriptions.values()),
            jstack=jstack,
        )

    async def _ask(
        self, peer: GrpcPeer, nonce: str, question: TelemetryCommand, shown: Command
    ) -> TelemetryCommand | None:
        """The client's answer; `None` if none arrives in time, or if there is no stream to ask on."""
        if len(self._waiting) >= MAX_WAITING or not peer.is_reachable:
            return None
        future: asyncio.Future[TelemetryCommand] = peer.loop.create_future()
        self._waiting[nonce] = future
        try:
            peer.command(question, shown)
            async with asyncio.timeout(self._seconds):
                return await future
        except TimeoutError:
            return None
        finally:
            del self._waiting[nonce]

    def _next_nonce(self) -> str:
        nonce = str(self._nonce)
        self._nonce += 1
        return nonce


def _shown(request: Request[Any], body: RawBody | None, flag: int = 0) -> Command:
    """A request of the broker in the form in which remoting clients get it."""
    return Command(request.code, 0, flag, None, to_fields(request), body, version=V5_5_0)


def _reply(
    code: ResponseCode = ResponseCode.SUCCESS, remark: str | None = None, body: Body | None = None
) -> Command:
    return Command(code, 0, RESPONSE_FLAG, remark, None, None if body is None else body.encode())
