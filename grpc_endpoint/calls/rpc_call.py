"""One call, as handlers use it. `Stream` is what it needs of HTTP/2, so that tests need no socket."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, cast

from pocketmq.protocol.wire.command import Command

from ..messages.proto import Message
from ..messages.service import Rpc
from .refusals import GrpcStatus


class Held:
    """The type of `HELD`."""


HELD: Final = Held()
"""Returned by a handler that answers later."""
AT_PASS_END: Final = Held()
"""Returned by a handler whose part answers when the connection's pass ends, with the other calls of the pass."""


class Receiver(Protocol):
    """What the handler of a telemetry stream returns: it takes what the client sends."""

    def received(self, message: Message) -> None:
        """One message arrived. May raise as any handler may; the stream then ends."""

    def closed(self) -> None:
        """The client sends nothing more: it closed its side, or the call was cancelled. Called once."""


class Stream(Protocol):
    """The replies' side of one call."""

    def send_reply(self, message: Message) -> None:
        """Send one message; the stream stays open."""

    def send_command(self, message: Message, shown: Command) -> None:
        """Send a command of the server, which watchers see as this request of the broker."""

    def answer(self, message: Message) -> None:
        """Send one message and end the call with OK."""

    def answer_stream(self, replies: Sequence[bytes]) -> None:
        """Send all messages of a stream, whose status is OK, and end the call with OK."""

    def finish(self, status: GrpcStatus, text: str) -> None:
        """End the call with this status."""


_NO_STREAM: Final = cast(Stream, None)
"""Of a call that has ended: nothing is sent any more."""


class RpcCall:
    """One call of a client. All methods do nothing once the call has ended or was cancelled."""

    __slots__ = (
        "_cancel_callbacks",
        "_stream",
        "_undelivered_callback",
        "cancelled",
        "deadline",
        "is_ended",
        "loop",
        "metadata",
        "notes",
        "packed_host",
        "peer",
        "rpc",
    )

    def __init__(
        self,
        rpc: Rpc,
        stream: Stream,
        loop: asyncio.AbstractEventLoop,
        *,
        metadata: Mapping[str, str],
        peer: str,
        packed_host: bytes,
        deadline: float | None = None,
    ) -> None:
        self.rpc = rpc
        self._stream = stream
        self.loop = loop
        self.metadata = metadata
        """The request's headers: lower-case keys, the first value of each."""
        self.peer = peer
        """`host:port` of the client's connection."""
        self.packed_host = packed_host
        """The same address in the bytes of a stored message."""
        self.deadline = deadline
        """The loop's time when the client gives up; `None` if it never does."""
        self.cancelled = False
        """The client cancelled the call, its connection closed, or its deadline is past."""
        self.is_ended = False
        self.notes: dict[str, str] | None = None
        """What watchers see beside the reply: what the server did that the reply does not say."""
        self._cancel_callbacks: list[Callable[[], None]] = []
        self._undelivered_callback: Callable[[], None] | None = None

    @property
    def name(self) -> str:
        """The rpc's name, `SendMessage` for example."""
        return self.rpc.name

    @property
    def client_id(self) -> str:
        return self.metadata.get("x-mq-client-id", "")

    @property
    def language(self) -> str:
        """As the client says it, in capitals: JAVA, PYTHON."""
        return self.metadata.get("x-mq-language", "")

    @property
    def remaining_seconds(self) -> float | None:
        """Time until the client gives up; `None` if it never does."""
        return None if self.deadline is None else self.deadline - self.loop.time()

    def answer(self, reply: Message) -> None:
        """The reply of a unary call; on a stream, one message and its end."""
        if not self.is_ended and not self.cancelled:
            self.is_ended = True  # before the receiver of a stream hears of its end, which would end the call
            try:
                self._stream.answer(reply)
            except Exception:
                self.is_ended = False  # the reply could not be written: another one can
                raise
            self._has_ended()

    def answer_stream(self, replies: Sequence[bytes]) -> None:
        """All messages of a stream as bytes, and its end. Their status is OK."""
        if not self.is_ended and not self.cancelled:
            stream = self._stream
            self._has_ended()
            stream.answer_stream(replies)

    def send(self, message: Message) -> None:
        """One message of a stream, which stays open."""
        if not self.is_ended and not self.cancelled:
            self._stream.send_reply(message)

    def command(self, message: Message, shown: Command) -> None:
        """A command of the server on a telemetry stream; `shown` is the broker's request as remoting clients get it."""
        if not self.is_ended and not self.cancelled:
            self._stream.send_command(message, shown)

    def end(self) -> None:
        """The end of a stream, with gRPC status OK."""
        if not self.is_ended and not self.cancelled:
            self._finish(GrpcStatus.OK, "")

    def refuse(self, grpc_status: int, text: str) -> None:
        """The end of the call with a gRPC status other than OK."""
        if not self.is_ended and not self.cancelled:
            self._finish(GrpcStatus(grpc_status), text)

    def when_cancelled(self, callback: Callable[[], None]) -> None:
        """Call back if the call is cancelled before it ended; at once if it was."""
        if self.cancelled:
            callback()
        elif not self.is_ended:
            self._cancel_callbacks.append(callback)

    def when_undelivered(self, callback: Callable[[], None]) -> None:
        """Call back if the client goes after the call has ended, before all replies were written to its connection."""
        self._undelivered_callback = callback

    def undelivered(self) -> None:
        """Replies were lost. Called by the connection."""
        if self._undelivered_callback is not None:
            self._undelivered_callback()

    def cancel(self) -> None:
        """The client wants no reply any more. Called by the connection."""
        if self.cancelled or self.is_ended:
            return
        self.cancelled = True
        callbacks, self._cancel_callbacks = self._cancel_callbacks, []
        for callback in callbacks:
            callback()

    def _finish(self, status: GrpcStatus, text: str) -> None:
        stream = self._stream
        self._has_ended()
        stream.finish(status, text)

    def _has_ended(self) -> None:
        self.is_ended = True
        self._cancel_callbacks.clear()
        self._stream = _NO_STREAM  # the two hold one another: without this only the collector would free them
