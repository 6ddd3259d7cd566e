"""What a connection uses of the server it belongs to, the limits of each connection, and its calls.

Mirrors what `NettyRemotingAbstract` shares between its channels: the processor table, the RPC hooks, the semaphores;
and its response table.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from pocketmq.core.sends import End, Send
from pocketmq.protocol.wire.command import Command, RawBody
from pocketmq.protocol.wire.schema import Request, to_fields

from ..bounded_cache import SaidOnce
from ..errors import PeerError
from .dispatch import Handlers
from .watch import Watchable, Watcher

_log = logging.getLogger("pocketmq.network")

Guard = Callable[[Command, str], None]
"""Called with each request and its sender's `host:port`; raises `Refusal` to refuse it."""

Signer = Callable[[Command, RawBody | None], None]
"""Called with a request of ours and its body; adds the fields that sign it."""

SendHandler = Callable[[Any, list[Send], list[End]], None]
"""Handles sends and ends of transactions that a `Connection` recognised without decoding them, in their order."""

Write = Callable[[Command, RawBody | None], None]

PASS_FRAMES: Final = 16
"""Frames handled in one pass, about 0.3 ms of sends. Fewer mean more loop iterations; more mean that the peer waits
longer for its first replies."""
PASS_BYTES: Final = 256 * 1024
"""Bytes of replies after which a pass ends: small requests may have large replies."""
AHEAD_BYTES: Final = 256 * 1024
"""Bytes read from a peer while its earlier frames wait to be handled; beyond that we stop reading from it."""


class Limits(msgspec.Struct, frozen=True):
    """Limits of each connection; defaults and names as in `config/broker_config.py`."""

    idle_seconds: float = 120.0
    """The server closes a connection without a read for this long, as the official server's idle handler does."""
    unread_bytes: int = 4_194_304
    """While a peer leaves more than this unread, we do not read from it."""
    tasks: int = 4096
    """Coroutine handlers that run at once."""
    calls: int = 4096
    """Requests of ours without a reply."""
    pass_seconds: float = 0.005
    """A pass ends with the request that it handles then: most take 20 us, but some that are allowed take 20 ms."""


class ServerContext(Watchable):
    """One server, as its connections see it."""

    loop: asyncio.AbstractEventLoop

    def __init__(
        self, name: str, version: int, json_replies: bool, limits: Limits | None, watchers: Sequence[Watcher]
    ) -> None:
        Watchable.__init__(self, watchers)
        self.handlers = Handlers(name)
        """Empty until `serve`."""
        self.guard: Guard | None = None
        """Sees each request before its handler does; `None` without access control."""
        self.sends: SendHandler | None = None
        """Handles sends that were read without being decoded; `None` if each request is decoded."""
        self.version = version
        self.json_replies = json_replies
        """Whether replies have JSON headers always (5.5.0), or the header form of their request (4.9.7)."""
        self.limits = limits or Limits()
        self._opaque = itertools.count(1)
        self._said = SaidOnce()

    def next_opaque(self) -> int:
        return next(self._opaque) & 0x7FFFFFFF

    def connected(self, connection: Any, descriptor: int) -> None:
        """A `Connection` is open."""

    def disconnected(self, connection: Any) -> None:
        """A `Connection` is closed, and its unanswered calls have failed."""

    def unknown_code(self, code: int, peer: str) -> None:
        """Log once for each code that it has no handler."""
        if self._said.first(code):
            _log.warning("%s: request code %d is not supported (from %s)", self.handlers.name, code, peer)


class Calls:
    """Our own requests to one peer, matched with their replies by their opaque number; at most `Limits.calls` wait at
    once."""

    def __init__(self, server: ServerContext) -> None:
        self._server = server
        self._waiting: dict[int, asyncio.Future[Command]] = {}
        self.signer: Signer | None = None
        """Signs our requests, if the peer checks signatures."""

    def can_call(self) -> bool:
        return len(self._waiting) < self._server.limits.calls

    async def exchange(
        self, write: Write, request: Request[Any], body: RawBody | None, *, timeout_seconds: float
    ) -> Command:
        """Send a request and wait for the reply frame, whatever its code. `TimeoutError` if none arrives."""
        command = self.command(request, 0)
        future: asyncio.Future[Command] = self._server.loop.create_future()
        self._waiting[command.opaque] = future
        try:
            if self.signer is not None:
                self.signer(command, body)
            write(command, body)
            async with asyncio.timeout(timeout_seconds):
                return await future
        finally:
            self._waiting.pop(command.opaque, None)

    def command(self, request: Request[Any], flag: int) -> Command:
        """The frame of a request."""
        opaque, version = self._server.next_opaque(), self._server.version
        return Command(request.code, opaque, flag, None, to_fields(request), version=version)

    def reply_received(self, command: Command) -> None:
        """Pass a reply to its waiting request; drop it if the request no longer waits."""
        future = self._waiting.get(command.opaque)
        if future is not None and not future.done():
            if command.body is not None:
                command.body = bytes(command.body)  # a view of the read buffer until now
            future.set_result(command)

    def fail(self, reason: str) -> None:
        """Fail all waiting requests: the connection is closed."""
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(PeerError(reason))
        self._waiting.clear()
