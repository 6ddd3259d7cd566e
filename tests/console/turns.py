"""The longest turn of a server's loop, by the processor time of its thread."""

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pocketmq.testing import EmbeddedServer

MOST_SECONDS = 0.05
"""What any turn may take."""


class Turns:
    def __init__(self) -> None:
        self.longest = 0.0
        self._before = 0.0
        self._is_watching = True

    async def start(self) -> None:
        self._before = time.thread_time()
        self._look()

    async def stop(self) -> None:
        self._look()
        self._is_watching = False

    def _look(self) -> None:
        now = time.thread_time()
        self.longest, self._before = max(self.longest, now - self._before), now
        if self._is_watching:
            asyncio.get_running_loop().call_later(0.001, self._look)


@contextmanager
def turns_of(server: EmbeddedServer) -> Iterator[Turns]:
    """Looks at every turn inside; `longest` has seconds afterwards. What other tests left is not collected then."""
    turns = Turns()
    gc.collect()
    gc.freeze()
    server.run(turns.start())
    yield turns
    server.run(turns.stop())
    gc.unfreeze()
