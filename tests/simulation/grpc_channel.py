"""A connection of a gRPC client of the simulation: a `GrpcClient`, with a time limit for each call.

    channel = await Channel.connected(host, port, metadata, window=1000)
    reply = await channel.ask(messages.AckMessageRequest(...), seconds=3)
    call = channel.open("Telemetry")

`RpcError`: a call has no reply; it ended with a gRPC status, or took too long. Whether the server has done what was
asked, nobody knows.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from pocketmq.grpc_endpoint.messages.proto import Message
from pocketmq.grpc_endpoint.messages.service import BY_REQUEST, Kind

from grpc_client import ClientCall, GrpcClient, RpcError

CONNECT_SECONDS: Final = 3.0
BROKEN: Final = -1
"""In place of a gRPC status: the connection or the stream has ended."""


class Channel:
    """`is_open` until the server says goodbye, or the connection has gone."""

    def __init__(self, client: GrpcClient, metadata: Mapping[str, str]) -> None:
        self._client, self._metadata = client, metadata

    @classmethod
    async def connected(cls, host: str, port: int, metadata: Mapping[str, str], window: int) -> "Channel":
        """Raises `RpcError`."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return cls(await GrpcClient.started(f"{host}:{port}", window=window), metadata)
        except OSError as error:
            raise RpcError(BROKEN, f"{host}:{port} is not reached: {error}") from error

    @property
    def is_open(self) -> bool:
        return self._client.goaway is None and not self._client.is_closed.is_set()

    def open(self, name: str, request: Message | None = None, *, seconds: float | None = None) -> ClientCall:
        """Begin a call; with a request the client sends nothing more. Raises `RpcError` on a closed channel."""
        if not self.is_open:
            raise RpcError(BROKEN, "the channel is closed")
        timeout = None if seconds is None else f"{int(seconds * 1000)}m"
        return self._client.open(name, request, headers=self._metadata, timeout=timeout)

    async def messages(self, request: Message, seconds: float) -> list[Any]:
        """All that a call answers within this time. Raises `RpcError`."""
        call = self.open(BY_REQUEST[type(request)].name, request, seconds=seconds)
        try:
            async with asyncio.timeout(seconds):
                return await call.all(None)
        except TimeoutError as error:
            raise RpcError(BROKEN, f"{type(request).__name__} is not answered") from error
        finally:
            if not call.is_ended:
                call.cancel()

    async def ask(self, request: Message, seconds: float) -> Any:
        """The reply of a call with one. Raises `RpcError`."""
        assert BY_REQUEST[type(request)].kind is Kind.UNARY
        (reply,) = await self.messages(request, seconds)
        return reply

    async def close(self) -> None:
        await self._client.close()
