"""Lists of any length in answers of a limited size, made without holding the loop.

    page = Page(limit)
    async with reading as pause:             one long reading at a time, for the whole port
        for name in ...:
            if page.is_full: return page.response(after=name_before)
            page.add(value)
            await pause()                    yields to the loop every 5 ms

A page ends after `limit` entries or 1 MiB, but has one entry at least; the header `Link: <address>; rel="next"` has
the address of the next one.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterable
from time import perf_counter
from typing import Any, Final, TypeVar, cast
from urllib.parse import quote, urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

PAGE_BYTES: Final = 1 << 20
"""A page that has so many bytes gets no further entry."""
TURN_SECONDS: Final = 0.005

ResultT = TypeVar("ResultT")
Pause = Callable[[], Awaitable[None]]
"""Await it after each piece of work: it yields to the loop if the turn was long enough."""


class Reading:
    """Work that may be long: one at a time, in turns of 5 ms."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._until = 0.0

    async def __aenter__(self) -> Pause:
        await self._lock.acquire()
        self._until = perf_counter() + TURN_SECONDS
        return self._pause

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()

    async def _pause(self) -> None:
        if perf_counter() > self._until:
            await asyncio.sleep(0)
            self._until = perf_counter() + TURN_SECONDS


async def in_turns(steps: Generator[None, None, ResultT], pause: Pause) -> ResultT:
    """The result of work that yields between its steps, a turn of the loop at a time."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(ResultT, end.value)
        await pause()


class Page:
    """A JSON list that grows until it is full."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: deque[bytes] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def is_full(self) -> bool:
        return len(self._entries) >= self._limit or self._bytes >= PAGE_BYTES

    def add(self, value: object, *, first: bool = False) -> None:
        """Add an entry, behind the others or before them."""
        entry = msgspec.json.encode(value)
        if first:
            self._entries.appendleft(entry)
        else:
            self._entries.append(entry)
        self._bytes += len(entry)

    def response(self, request: Request, **following: object) -> Response:
        """The answer; with `following`, the parameters that the next page has instead of this one's."""
        headers = {}
        if following and self._entries:  # limit=0 has no next page
            given: dict[str, Any] = {**request.query_params, **following}
            path = quote(request.url.path, safe="/%")
            headers["link"] = f'<{path}?{urlencode(given)}>; rel="next"'
        body = b"[" + b",".join(self._entries) + b"]"
        return Response(body, media_type="application/json", headers=headers)


DEFAULT_NAMES: Final = 1000
MAX_NAMES: Final = 10_000
"""Topics or groups in one answer."""


def first_names(names: Iterable[str], part: str, after: str, limit: int) -> list[str]:
    """The first names, sorted, that contain a part and are behind another: as many as wanted, and one more."""
    return heapq.nsmallest(limit + 1, (name for name in names if name > after and part in name))
