"""The listener of a consumer that is iterated over: gives each message to the reader and waits until it is done.

A message read with `async for` is done when the next one is asked for, those of `fetch` when it returns. If a reader
leaves the loop before that, or is cancelled, the next reader gets the message again; without one, another consumer of
the group gets it.
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
        """Messages that readers have and are not done with."""
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

    async def fetch(self, count: int, timeout_ms: int) -> list[MessageExt]:
        """Up to `count` messages within the time, all of them acknowledged."""
        found: list[_Item] = []
        done = 0  # so many of them are finished already
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while len(found) < count:
                    if not self._waiting and self.held >= self._calls_at_once:
                        # Every listener call waits for its reader: finish them, or no more messages arrive.
                        self._finish(found[done:])
                        done = len(found)
                    item = await self._next()
                    if item is None:
                        break
                    found.append(item)
                    self.held += 1
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            self.held -= len(found) - done
            self._hand_back(found)
            raise
        self._finish(found[done:])
        return [message for message, _ in found]

    def close(self) -> None:
        """End the iteration."""
        self._closed = True
        self._waiting.clear()
        self._arrived.set()

    def _finish(self, items: list[_Item]) -> None:
        """The reader is done with these."""
        for item in items:
            _finish(item)
        self.held -= len(items)

    def _hand_back(self, items: list[_Item]) -> None:
        """The reader did not finish these: the next reader gets them before all others."""
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
