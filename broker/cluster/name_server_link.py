"""One name server as a broker sees it: an address, a lasting connection, and the topics it was sent.

A link opens its connection when the broker sends a request, and opens it again after a loss. It logs once that a name
server is lost and once that it is back. `registration.py` decides what to send.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from pocketmq.protocol.wire.command import Command, RawBody
from pocketmq.protocol.wire.schema import Request

from ..errors import PeerError
from ..network.connection import Connection

_log = logging.getLogger("pocketmq.cluster")

FIRST_RETRY_SECONDS: Final = 1.0
MAX_RETRY_SECONDS: Final = 10.0

ReplyT = TypeVar("ReplyT")
Connect = Callable[[str], Awaitable[Connection]]
"""Opens a connection to `host:port`. Raises `PeerError` if that fails."""


class NameServerLink:
    """`known` is the number of the last change of a topic that the name server was sent; `None` if it needs all topics.
    `sending` is the number of the last change in the registration that is under way.

    `lock` is held while topics are sent, so that data versions are sent one after the other. `change` is the task that
    sends changed topics.
    """

    def __init__(self, connect: Connect, address: str) -> None:
        self.address = address
        self.known: int | None = None
        self.sending: int | None = None
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
        """Whether a lost name server should be tried again: 1 s after the loss, later at intervals of up to 10 s."""
        return not self.is_open and asyncio.get_running_loop().time() >= self._retry_at

    async def call(
        self, request: Request[ReplyT], body: RawBody | None = None, *, timeout_seconds: float
    ) -> tuple[Command, ReplyT]:
        """Send a request and wait for the reply. Raises `Refusal` if the name server refuses it, `PeerError` if it does
        not answer."""
        try:
            async with asyncio.timeout(timeout_seconds):
                connection = await self._open()
            answer = await connection.call(request, body, timeout_seconds=timeout_seconds)
        except (PeerError, TimeoutError) as error:
            reason = str(error) or "timed out"
            if not self._is_down:
                _log.warning("name server %s does not answer: %s; trying again", self.address, reason)
            self._is_down, self.known = True, None
            self._retry_at = asyncio.get_running_loop().time() + self._retry_seconds
            self._retry_seconds = min(2 * self._retry_seconds, MAX_RETRY_SECONDS)
            raise PeerError(f"name server {self.address}: {reason}") from error
        if self._is_down:
            _log.info("name server %s is back", self.address)
        self._is_down, self._retry_seconds = False, FIRST_RETRY_SECONDS
        return answer

    def notify(self, request: Request[Any], body: RawBody | None = None) -> None:
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
            self.known = None  # another name server may run at the address now
            self._connection = await self._connect(self.address)
            return self._connection
