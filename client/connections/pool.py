"""One connection for each address, opened when it is first needed, and again after it ended.

However many callers need an address, one connect to it is under way. The time of a call includes connecting.

A server that is about to stop answers GO_AWAY: the request is repeated once over a new connection, as 5.x clients do.
Mirrors the channel table of `NettyRemotingClient`.
"""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from typing import Any, Final

from pocketmq.protocol.wire.command import Command, RawBody
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.schema import ReplyT, Request, RequestBody, encode_request_body

from ..errors import CallTimeout, ClientError, NotReachable, RequestRefused
from ..hooks.rpc_hooks import RPCHook
from ..tasks import SharedWork, until_ended
from .connection import CALL_TIMEOUT_SECONDS, CONNECT_TIMEOUT_SECONDS, Connection, Push

LAST_WORD_SECONDS: Final = 0.5


class ConnectionPool:
    """The connections of one client instance. `close` ends them all.

    `on_open` is called with the address of each new connection, also of one that replaces another; `on_failed` with an
    address that cannot be connected to.
    """

    def __init__(
        self,
        on_push: Push | None = None,
        *,
        hooks: Sequence[RPCHook] = (),
        tls: ssl.SSLContext | None = None,
        language: str = "PYTHON",
        on_open: Callable[[str], None] | None = None,
        on_failed: Callable[[str], None] | None = None,
    ) -> None:
        self._on_push = on_push
        self._how: dict[str, Any] = {"hooks": hooks, "tls": tls, "language": language}
        self._on_open = on_open
        self._on_failed = on_failed
        self._open: dict[str, Connection] = {}
        self._connecting = SharedWork(self._connect)
        self._leaving: list[Connection] = []
        self._closed = False

    def live(self, address: str) -> Connection | None:
        """The open connection to an address, if there is one."""
        connection = self._open.get(address)
        return None if connection is None or connection.closed else connection

    async def get(self, address: str, timeout_seconds: float | None = None) -> Connection:
        """A live connection to `host:port`; `NotReachable` if none can be made, `CallTimeout` if that takes longer than
        the caller has time, or than `CONNECT_TIMEOUT_SECONDS`."""
        connection = self.live(address)
        if connection is not None:
            return connection
        if self._closed:
            raise NotReachable(f"the client is shut down: no connection to {address}")
        try:
            async with asyncio.timeout(timeout_seconds):
                connection = await self._connecting.result(address)
        except TimeoutError as error:
            if isinstance(error, ClientError):
                raise
            raise CallTimeout(f"no connection to {address} within {timeout_seconds:.3g} s") from None
        if connection is None:
            raise NotReachable(f"the client is shut down: no connection to {address}")
        return connection

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
        self, address: str, request: Request[Any], *, timeout_seconds: float = CALL_TIMEOUT_SECONDS
    ) -> bytes:
        """The reply's body, empty if it has none; refusals as `call`."""
        command = await self.exchange(address, request, timeout_seconds=timeout_seconds)
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
        """The reply frame, whatever its code; `NotReachable` if none arrives in time, connecting included."""
        loop = asyncio.get_running_loop()
        due = loop.time() + timeout_seconds
        connection = self.live(address) or await self.get(address, timeout_seconds)
        command = await connection.post(request, body, timeout_seconds=due - loop.time())
        if command.code != ResponseCode.GO_AWAY:
            return command
        self.leave(connection)
        connection = await self.get(address, due - loop.time())
        return await connection.post(request, body, timeout_seconds=due - loop.time())

    async def notify(self, address: str, request: Request[Any], body: RawBody | None = None) -> None:
        """Send a one-way request; `NotReachable` if no connection can be made."""
        (await self.get(address, CALL_TIMEOUT_SECONDS)).notify(request, body)

    def leave(self, connection: Connection) -> None:
        """Make no new requests over a connection; replies under way still arrive until the server ends it."""
        if self._open.get(connection.address) is connection:
            del self._open[connection.address]
            self._leaving = [left for left in self._leaving if not left.closed]
            self._leaving.append(connection)

    def close(self) -> None:
        """End every connection; none can be made afterwards."""
        self._closed = True
        self._connecting.cancel()
        for connection in (*self._open.values(), *self._leaving):
            connection.close()

    async def until_lost(self) -> None:
        """After `close`: until the sockets are closed too. A peer that does not end its side of TLS in time is left."""
        closing = [*self._open.values(), *self._leaving]
        await until_ended(self._connecting.cancel())
        self._open.clear()
        self._leaving.clear()
        try:
            async with asyncio.timeout(LAST_WORD_SECONDS):
                for connection in closing:
                    await connection.lost.wait()
        except TimeoutError:
            for connection in closing:
                connection.abort()
            await asyncio.sleep(0)  # the loop closes aborted sockets in its next turn

    async def _connect(self, address: str) -> Connection:
        try:
            connection = await Connection.connect(
                address, self._on_push, timeout_seconds=CONNECT_TIMEOUT_SECONDS, **self._how
            )
        except NotReachable:
            self._open.pop(address, None)
            if self._on_failed is not None:
                self._on_failed(address)
            raise
        if self._closed:
            connection.close()
            raise NotReachable(f"the client is shut down: no connection to {address}")
        self._open[address] = connection
        if self._on_open is not None:
            self._on_open(address)
        return connection
