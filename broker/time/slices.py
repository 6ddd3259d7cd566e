"""How much one loop iteration may do, so that other requests are answered meanwhile.

Reports over all groups, topics or queues are made in slices of time; messages and answers are counted. What a table
holds is copied before (`list(...)`): it may change between two slices.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from time import perf_counter
from typing import Any, Final, TypeVar

from pocketmq.protocol.text import fastjson

SLICE_SECONDS: Final = 0.0005
ITEMS_IN_A_TURN: Final = 50
"""Messages stored, or items visited, in one loop iteration: about a millisecond of work."""
MAX_LATE_FACTOR: Final = 8
"""How many times as many items fit if the work is late: once more for each second."""
BYTES_OF_AN_ITEM: Final = 16384
"""A longer message counts as several."""
ANSWERS_IN_A_TURN: Final = 64
"""Held requests handled in one loop iteration: about a millisecond of work, most of it writing to sockets."""
MAX_REPORTS: Final = 2
"""Reports made at once; each may hold as much memory as the longest frame and what it is made of."""
ITEMS_ENCODED_AT_ONCE: Final = 500
"""A text of more items is made in a thread: ten microseconds an item."""

ItemT = TypeVar("ItemT")


class Budget:
    """How much one loop iteration may still do."""

    __slots__ = ("left",)

    def __init__(self, late_ms: int = 0) -> None:
        """`late_ms` is how late the work is: on a broker without a pause it would be later and later."""
        self.left = ITEMS_IN_A_TURN * min(1 + max(late_ms, 0) // 1000, MAX_LATE_FACTOR)

    @property
    def is_spent(self) -> bool:
        return self.left <= 0

    def spend(self, items: int = 1, size_bytes: int = 0) -> None:
        self.left -= items + size_bytes // BYTES_OF_AN_ITEM


class Slice:
    """A turn's share of work that others wait for."""

    def __init__(self) -> None:
        self._start = perf_counter()

    async def pause_if_over(self) -> None:
        """After half a millisecond, let others have their turn of the loop."""
        if perf_counter() - self._start > SLICE_SECONDS:
            await asyncio.sleep(0)
            self._start = perf_counter()


async def in_slices(items: Iterable[ItemT]) -> AsyncIterator[ItemT]:
    """The items; after half a millisecond others get their turn of the loop."""
    part = Slice()
    for item in items:
        yield item
        await part.pause_if_over()


async def encode_json(value: Any, items: int) -> bytes:
    """The JSON of a value that nobody changes any more, and that has so many items."""
    if items <= ITEMS_ENCODED_AT_ONCE:
        return fastjson.dumps(value)
    return await asyncio.to_thread(fastjson.dumps, value)
