"""One connection for each address, opened when it is first needed, and again after it ended.

A server that is about to stop answers GO_AWAY: the request is repeated once over a new connection, as 5.x clients do.
Mirrors the channel table of `NettyRemotingClient`.
"""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from typing import Any, Final

from pocketmq.protocol.wire.command import JSON, Command, RawBody
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.schema import ReplyT, Request, RequestBody, encode_request_body

from ..errors import NotReachable, RequestRefused
from ..hooks.rpc_hooks import RPCHook
from .connection import (
    CALL_TIMEOUT_SECONDS,
    CONNECT_TIMEOUT_SECONDS,
    Connection,
    Push,
)

LAST_WORD_SECONDS: Final = 0.5


class ConnectionPool:
    """The connections of one client instance. `close` ends them all.

    `on_open` is called with the address of each new connection, also of one that replaces another.
    """

    def __init__(
        self,
        on_push: Push | None = None,
        *,
        hooks: Sequence[RPCHook] = (),
        tls: ssl.SSLContext | None = None,
        header_type: int = JSON,
        language: str = "PYTHON",
        on_open: Callable[[str], None] | None = None,
    ) -> None:
        self._on_push = on_push
        self._hooks = hooks
        self._tls = tls
        self._header_type = header_type
        self._language = language
        self._on_open = on_open
        self._open: dict[str, Connection] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._leaving: list[Connection] = []
        self._closed = False

    def live(self, address: str) -> Connection | None:
        """The open connection to an address, if there is one."""
        connection = self._open.get(address)
        return None if connection is None or connection.closed else connection

    async def get(self, address: str) -> Connection:
        """A live connection to `host:port`; `NotReachable` if none can be made."""
        connection = self._open.get(address)
        if connection is not None and not connection.closed:
            return connection
        async with self._opening.setdefault(address, asyncio.Lock()):
            connection = self._open.get(address)
            if connection is not None and not connection.closed:
                return connection
            return await self._connect(address)

    async def call(
        self,
        address: str,
        request: Request[ReplyT],
        body: RequestBody | None = None,
        *,
        timeout_seconds: float = CALL_TIMEOUT_SECONDS,
    ) -> ReplyT:
        """What the request declares of its reply; errors as `Connection.call`."""
        command = await self.exchange(
            address, request, encode_request_body(request, body), timeout_seconds=timeout_seconds
        )
        return Connection.read_reply(request, command)

    async def call_for_body(
        self,
        address: str,
        request: Request[Any],
        body: RawBody | None = None,
        *,
        timeout_seconds: float = CALL_TIMEOUT_SECONDS,
    ) -> bytes:
        """The reply's body, empty if it has none; refusals as `call`."""
        command = await self.exchange(address, request, body, timeout_seconds=timeout_seconds)
        if command.code != 0:
            raise RequestRefused(command.code, command.remark or "", request.name)
        return b"" if command.body is None else bytes(command.body)

    async def exchange(
        self,
        address: str,
        request: Request[Any],
        body: RawBody | None = None,
        *,
        timeout_seconds: float = CALL_TIMEOUT_SECONDS,
    ) -> Command:
        """The reply frame, whatever its code; `NotReachable` if none arrives in time."""
        connection = self.live(address) or await self.get(address)
        command = await connection.exchange(request, body, timeout_seconds=timeout_seconds)
        if command.code != ResponseCode.GO_AWAY:
            return command
        self.leave(connection)
        connection = await self.get(address)
        return await connection.exchange(request, body, timeout_seconds=timeout_seconds)

    async def notify(self, address: str, request: Request[Any], body: RawBody | None = None) -> None:
        """Send a one-way request; `NotReachable` if no connection can be made."""
        (await self.get(address)).notify(request, body)

    def leave(self, connection: Connection) -> None:
        """Make no new requests over a connection; replies under way still arrive until the server ends it."""
        if self._open.get(connection.address) is connection:
            del self._open[connection.address]
            self._leaving = [left for left in self._leaving if not left.closed]
            self._leaving.append(connection)

    def close(self) -> None:
        """End every connection; none can be made afterwards."""
        self._closed = True
        for connection in (*self._open.values(), *self._leaving):
            connection.close()

    async def until_lost(self) -> None:
        """After `close`: until the sockets are closed too, or a peer has not ended its side of TLS in time."""
        closing = [*self._open.values(), *self._leaving]
        self._open.clear()
        self._leaving.clear()
        try:
            async with asyncio.timeout(LAST_WORD_SECONDS):
                for connection in closing:
                    await connection.lost.wait()
        except TimeoutError:
            pass

    async def _connect(self, address: str) -> Connection:
        if self._closed:
            raise NotReachable(f"the client is shut down: no connection to {address}")
        connection = await Connection.connect(
            address,
            self._on_push,
            hooks=self._hooks,
            tls=self._tls,
            header_type=self._header_type,
            language=self._language,
            timeout_seconds=CONNECT_TIMEOUT_SECONDS,
        )
        if self._closed:
            connection.close()
            raise NotReachable(f"the client is shut down: no connection to {address}")
        self._open[address] = connection
        if self._on_open is not None:
            self._on_open(address)
        return connection
