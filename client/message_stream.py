"""The listener of a consumer that is iterated over: it hands each message to the reader and waits for the verdict.

A message read with `async for` is done when the next one is asked for; leaving the loop in its middle leaves the last
one undone, and it comes again. Next: `lite_pull_consumer.py`.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from .message import MessageExt


class MessageStream:
    """Called as a listener; read with `messages` or `fetch`."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[MessageExt, asyncio.Future[None]]] = deque()
        self._arrived = asyncio.Event()
        self._closed = False

    async def __call__(self, message: MessageExt) -> None:
        """Return when the reader is done with the message."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((message, done))
        self._arrived.set()
        await done

    async def messages(self) -> AsyncIterator[MessageExt]:
        """Until the consumer is shut down."""
        while (item := await self._next()) is not None:
            message, done = item
            yield message
            if not done.done():
                done.set_result(None)

    async def fetch(self, count: int, timeout: float) -> list[MessageExt]:
        """Up to `count` messages within `timeout` seconds; all of them done."""
        found: list[MessageExt] = []
        try:
            async with asyncio.timeout(timeout):
                while len(found) < count and (item := await self._next()) is not None:
                    message, done = item
                    found.append(message)
                    done.set_result(None)
        except TimeoutError:
            pass
        return found

    def close(self) -> None:
        """End the iteration."""
        self._closed = True
        self._waiting.clear()
        self._arrived.set()

    async def _next(self) -> tuple[MessageExt, asyncio.Future[None]] | None:
        while True:
            while self._waiting:
                item = self._waiting.popleft()
                if not item[1].done():  # cancelled with its worker
                    return item
            if self._closed:
                return None
            self._arrived.clear()
            await self._arrived.wait()
