"""Sends our own requests to a peer, and matches the replies by their opaque number.

Each connection has one `Calls`. Mirrors the response table of `NettyRemotingAbstract`.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from pocketmq.protocol.wire.command import ONEWAY_FLAG, Command, RawBody
from pocketmq.protocol.wire.schema import Request, to_fields

from ..errors import PeerError
from .role import Role, Signer

Write = Callable[[Command, RawBody | None], None]


class Calls:
    """At most `Limits.calls` requests wait for replies at once."""

    def __init__(self, role: Role) -> None:
        self._role = role
        self._waiting: dict[int, asyncio.Future[Command]] = {}
        self.signer: Signer | None = None
        """Signs our requests, if the peer checks signatures."""

    def can_call(self) -> bool:
        return len(self._waiting) < self._role.limits.calls

    async def exchange(
        self, write: Write, request: Request[Any], body: RawBody | None, *, timeout_seconds: float
    ) -> Command:
        """Send a request and wait for the reply frame, whatever its code. `TimeoutError` if none arrives."""
        command = self._command(request, 0)
        future: asyncio.Future[Command] = self._role.loop.create_future()
        self._waiting[command.opaque] = future
        try:
            if self.signer is not None:
                self.signer(command, body)
            write(command, body)
            async with asyncio.timeout(timeout_seconds):
                return await future
        finally:
            self._waiting.pop(command.opaque, None)

    def notice(self, request: Request[Any]) -> Command:
        """The frame of a one-way request."""
        return self._command(request, ONEWAY_FLAG)

    def _command(self, request: Request[Any], flag: int) -> Command:
        opaque, version = self._role.next_opaque(), self._role.version
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
