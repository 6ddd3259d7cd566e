"""One name server as a broker sees it: an address, a lasting connection, and what that name server knows of us.

A link opens its connection when it has something to send and opens it again when it was lost; it logs once that a
name server is lost and once that it is back. `registration.py` decides what is sent.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.wire.command import Command, RawBody
from pocketmq.protocol.wire.schema import Request

from ..errors import PeerError
from ..network.connection import Connection

_log = logging.getLogger("pocketmq.cluster")

FIRST_RETRY_SECONDS: Final = 1.0
MAX_RETRY_SECONDS: Final = 10.0

ReplyT = TypeVar("ReplyT")
Connect = Callable[[str], Awaitable[Connection]]
"""Opens a connection to `host:port`; `PeerError` where that fails."""


class NameServerLink:
    """`known` are the topics it was last sent, None when it needs all of them.

    `lock` is held while topics are sent, one data version after the other; `change` is the task that sends changed
    ones.
    """

    def __init__(self, connect: Connect, address: str) -> None:
        self.address = address
        self.known: dict[str, TopicConfig] | None = None
        self.lock = asyncio.Lock()
        self.change: asyncio.Task[None] | None = None
        self._connect = connect
        self._connection: Connection | None = None
        self._opening = asyncio.Lock()
        self._is_down = False
        self._retry_seconds = FIRST_RETRY_SECONDS
        self._retry_at = 0.0

    @property
    def is_open(self) -> bool:
        return self._connection is not None and not self._connection.closed

    @property
    def is_due(self) -> bool:
        """Lost, and time to try again: 1 s after the loss, then ever more seldom up to 10 s."""
        return not self.is_open and asyncio.get_running_loop().time() >= self._retry_at

    async def call(
        self, request: Request[ReplyT], body: RawBody | None = None, *, timeout_seconds: float
    ) -> tuple[Command, ReplyT]:
        """Ask and wait. `Refusal` where the name server refuses, `PeerError` where it is not there."""
        try:
            async with asyncio.timeout(timeout_seconds):
                connection = await self._open()
            answer = await connection.call(request, body, timeout_seconds=timeout_seconds)
        except (PeerError, TimeoutError) as error:
            self._lost(error)
            raise PeerError(f"name server {self.address}: {error or 'timed out'}") from error
        self._reached()
        return answer

    def notify(self, request: Request[Any], body: RawBody | None = None) -> None:
        """Say it one-way, where there is a connection."""
        if self._connection is not None:
            self._connection.notify(request, body)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _open(self) -> Connection:
        async with self._opening:
            if self._connection is not None and not self._connection.closed:
                return self._connection
            self.known = None  # it may be another program by now
            self._connection = await self._connect(self.address)
            return self._connection

    def _lost(self, error: Exception) -> None:
        if not self._is_down:
            _log.warning("name server %s does not answer: %s; trying on", self.address, error)
        self._is_down = True
        self.known = None
        self._retry_at = asyncio.get_running_loop().time() + self._retry_seconds
        self._retry_seconds = min(2 * self._retry_seconds, MAX_RETRY_SECONDS)

    def _reached(self) -> None:
        if self._is_down:
            _log.info("name server %s is back", self.address)
        self._is_down = False
        self._retry_seconds = FIRST_RETRY_SECONDS
