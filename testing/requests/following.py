"""A reader that gets what is new in the log: behind `GET /api/requests/stream`.

It keeps its place in the log, not a queue of its own: a slow reader, or a thousand of them, cost nothing, and lose only
what leaves the log. A request that waits long for its reply is given twice: when it arrives, and with its reply.
"""

import asyncio
import itertools
from types import TracebackType
from typing import Final, Self

from .logged_request import LoggedRequest
from .matching import Match
from .request_log import RequestLog

BATCH: Final = 200
"""Requests looked at in one turn of the loop."""
OPEN: Final = 1000
"""Requests without a reply that a reader remembers; the oldest are forgotten."""


class Follower:
    """Use it on the server's loop: `with requests.follow() as follower: batch = await follower.next()`."""

    def __init__(self, log: RequestLog, match: Match) -> None:
        self._log = log
        self._match = match
        self._place = log.next_id - 1
        self._open: dict[int, LoggedRequest] = {}
        self._news = asyncio.Event()
        self.missed = 0
        """Requests that left the log before this reader came to them."""

    def __enter__(self) -> Self:
        self._log.changed.append(self._news.set)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._log.changed.remove(self._news.set)

    async def next(self) -> list[LoggedRequest]:
        """Wait for requests that are new or got their reply; at most `BATCH`, by id. Cancel it to stop waiting."""
        while True:
            before = self._place
            found = self._answered() + self._new()
            if found:
                return found
            if self._place > before:
                await asyncio.sleep(0)  # there may be more
            else:
                self._news.clear()
                await self._news.wait()

    def _answered(self) -> list[LoggedRequest]:
        found = [request for request in self._open.values() if request.response is not None]
        for request in found:
            del self._open[request.id]
        return [request for request in found if self._match.holds(request)]

    def _new(self) -> list[LoggedRequest]:
        found = []
        for request in itertools.islice(self._log.one_by_one(self._place, newest_first=False), BATCH):
            self.missed += request.id - self._place - 1
            self._place = request.id
            if not self._match.holds_before_reply(request):
                continue
            if request.response is None and not request.oneway:
                self._open[request.id] = request
                if len(self._open) > OPEN:
                    del self._open[next(iter(self._open))]
            if self._match.response is None or self._match.holds(request):
                found.append(request)
        return found
