"""The listener of a consumer that is iterated over: it hands each message to the reader and waits for the verdict.

A message read with `async for` is done when the next one is asked for, those of `fetch` when it returns. What a reader
leaves undone, by leaving the loop in its middle or by being cancelled, goes to the next reader; without one it comes
again to another consumer.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from ..values.message import MessageExt

_Item = tuple[MessageExt, asyncio.Future[None]]


class MessageStream:
    """Called as a listener; read with `messages` or `fetch`.

    `calls_at_once` is how many listener calls there may be: no more messages arrive while readers hold so many.
    """

    def __init__(self, calls_at_once: int = 1) -> None:
        self.held = 0
        """Messages in the hands of readers, not done."""
        self._calls_at_once = calls_at_once
        self._waiting: deque[_Item] = deque()
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
            self.held += 1
            asked_for_next = False
            try:
                yield item[0]
                asked_for_next = True
            finally:
                self.held -= 1
                if asked_for_next:
                    _finish(item)
                else:
                    self._hand_back([item])

    async def fetch(self, count: int, timeout: float) -> list[MessageExt]:
        """Up to `count` messages within `timeout` seconds; all of them done."""
        found: list[_Item] = []
        undone = 0
        try:
            async with asyncio.timeout(timeout):
                while len(found) < count:
                    if not self._waiting and self.held >= self._calls_at_once:
                        # Every listener call waits for a verdict: without one nothing more would come.
                        undone = self._finish_last(found, undone)
                    item = await self._next()
                    if item is None:
                        break
                    found.append(item)
                    undone += 1
                    self.held += 1
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            self.held -= undone
            self._hand_back(found)
            raise
        self._finish_last(found, undone)
        return [message for message, _ in found]

    def close(self) -> None:
        """End the iteration."""
        self._closed = True
        self._waiting.clear()
        self._arrived.set()

    def _finish_last(self, found: list[_Item], undone: int) -> int:
        """Say that the last `undone` of these are done: none is undone then."""
        for item in found[len(found) - undone :]:
            _finish(item)
        self.held -= undone
        return 0

    def _hand_back(self, items: list[_Item]) -> None:
        """Read, and not taken after all: the next reader gets them before everything else."""
        if not self._closed:
            self._waiting.extendleft(reversed(items))
            self._arrived.set()

    async def _next(self) -> _Item | None:
        while True:
            while self._waiting:
                item = self._waiting.popleft()
                if not item[1].cancelled():  # with its worker
                    return item
            if self._closed:
                return None
            self._arrived.clear()
            await self._arrived.wait()


def _finish(item: _Item) -> None:
    if not item[1].done():
        item[1].set_result(None)
