"""The request log as a test uses it: `rocketmq.requests`.

    rocketmq.requests.find(code="PULL_MESSAGE", group="billing")
    rocketmq.requests.wait_for(code="SEND_MESSAGE_V2", topic=orders, count=3)
    rocketmq.requests.none(code="CONSUMER_SEND_MSG_BACK", during_seconds=0.2)

Match words: `code` (official name or number), `topic`, `queue_id`, `group`, `client_id`, `broker`, `oneway`, `where` (a
function of the request), `response`. All given ones must hold. Methods may be called from any thread. The two that wait
do not wait inside a running event loop, which they would block: `await rocketmq.requests.aio.wait_for(...)` there.

A `Follower`, behind `GET /api/requests/stream`, gets what is new. It keeps its place in the log, not a queue of its
own: a slow reader, or a thousand of them, cost nothing, and lose only what leaves the log.
"""

import asyncio
import itertools
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any, Final, Self, TypeVar, Unpack, cast

from ..errors import WouldBlockError
from .logged_request import LoggedRequest
from .matching import FIND_WORDS, FindWords, Match, lines, match_of, nearest
from .request_log import RequestLog
from .values import check_int, check_number

WAIT_SECONDS: Final = 5.0
BATCH: Final = 200
"""Requests that a follower looks at in one turn of the loop."""
OPEN: Final = 1000
"""Requests without a reply that a follower remembers; the oldest are forgotten."""
_LOOK_SECONDS: Final = 0.002
_NEAREST: Final = 5
ResultT = TypeVar("ResultT")


class Follower:
    """Use it on the server's loop: `with requests.follow() as follower: batch = await follower.next()`.

    A request that waits long for its reply is given twice: when it arrives, and with its reply.
    """

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

    def __exit__(self, *_: object) -> None:
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


class Requests:
    """The requests that a server got since the test began, oldest first."""

    def __init__(self, log: RequestLog, call: Callable[[Callable[[], None]], None]) -> None:
        """`call` calls a function where the log is written, and waits for it."""
        self._log = log
        self._call = call
        self.aio = RequestsInLoop(self)
        """`wait_for` and `none` as coroutines."""

    def find(self, **words: Unpack[FindWords]) -> list[LoggedRequest]:
        """The requests that match, oldest first."""
        match = match_of("find", dict(words), allowed=FIND_WORDS)
        return [request for request in self._log.entries() if match.holds(request)]

    def count(self, **words: Unpack[FindWords]) -> int:
        """How many requests match; without a word, how many the log has."""
        match = match_of("count", dict(words), allowed=FIND_WORDS)
        if match == Match():
            return len(self._log)
        return sum(match.holds(request) for request in self._log.entries())

    def wait_for(
        self, *, count: int = 1, timeout_seconds: float = WAIT_SECONDS, **words: Unpack[FindWords]
    ) -> list[LoggedRequest]:
        """Wait until at least `count` requests match; returns all that do. An AssertionError that lists the five
        nearest after `timeout_seconds` by the wall's clock."""
        return _run("wait_for", self._waiting(count, timeout_seconds, dict(words)))

    def none(self, *, during_seconds: float = 0.0, **words: Unpack[FindWords]) -> None:
        """Raises AssertionError if a request matches, now or during the next `during_seconds`."""
        _run("none", self._watching(during_seconds, dict(words)))

    @property
    def dropped(self) -> int:
        """How many requests left the log because it was full."""
        return self._log.dropped

    def clear(self) -> None:
        """Forget all requests so far."""
        self._call(self._log.clear)

    def last(self, count: int = 20) -> list[LoggedRequest]:
        """The newest requests, oldest first."""
        return self._log.last(count)

    def report(self, count: int = 20) -> str:
        """The newest requests as text, one a line; empty if there is none."""
        found = self._log.last(count)
        left = (
            f"{self.dropped} older requests left the log, which was full\n" if self.dropped and found else ""
        )
        return f"{left}{lines(found)}"

    def __iter__(self) -> Iterator[LoggedRequest]:
        return self._log.entries()

    def __len__(self) -> int:
        return len(self._log)

    # -- for the HTTP port

    def one_by_one(self, *, after: int, newest_first: bool, **words: Any) -> Iterator[LoggedRequest | None]:
        """The requests with an id above `after` that match, and None in place of each that does not."""
        match = match_of("find", words, allowed=FIND_WORDS)
        candidates = self._log.one_by_one(after, newest_first=newest_first)
        return (request if match.holds(request) else None for request in candidates)

    def follow(self, **words: Any) -> Follower:
        """A reader of the requests from now on; use it on the server's loop, as a context manager."""
        return Follower(self._log, match_of("follow", words, allowed=FIND_WORDS))

    # -- waiting: generators that yield while there is nothing to say yet

    def _waiting(
        self, count: int, timeout_seconds: float, words: dict[str, Any]
    ) -> "Generator[None, None, list[LoggedRequest]]":
        wanted = check_int("count", count, least=1)
        deadline = time.monotonic() + check_number("timeout_seconds", timeout_seconds)
        match = match_of("wait_for", words, allowed=(*FIND_WORDS, "count", "timeout_seconds"))
        found = self._found_so_far(match)
        while len(matching := next(found)) < wanted:
            if time.monotonic() >= deadline:
                raise AssertionError(self._missing(match, wanted, len(matching), timeout_seconds))
            yield
        return matching

    def _watching(self, during_seconds: float, words: dict[str, Any]) -> Generator[None, None, None]:
        deadline = time.monotonic() + check_number("during_seconds", during_seconds)
        match = match_of("none", words, allowed=(*FIND_WORDS, "during_seconds"))
        found = self._found_so_far(match)
        while not (matching := next(found)):
            if time.monotonic() >= deadline:
                return
            yield
        raise AssertionError(f"{len(matching)} requests match {match}:\n{lines(matching[:_NEAREST])}")

    def _found_so_far(self, match: Match) -> Iterator[list[LoggedRequest]]:
        """All that match by now, again and again; a request is decoded once."""
        candidates: list[LoggedRequest] = []
        seen = 0
        while True:
            for request in self._log.after(seen):
                seen = request.id
                if match.holds_before_reply(request):
                    candidates.append(request)
            yield [request for request in candidates if match.response is None or match.holds(request)]

    def _missing(self, match: Match, wanted: int, found: int, timeout_seconds: float) -> str:
        text = f"{found} of {wanted} requests with {match} arrived within {timeout_seconds:g} s"
        near = nearest(match, self._log.entries(), _NEAREST)
        dropped = f"; {self.dropped} left the log, which was full" if self.dropped else ""
        if not near:
            return f"{text}; no request was logged{dropped}"
        return f"{text}{dropped}. The nearest of {len(self)}:\n{lines(near)}"


class RequestsInLoop:
    """The waits of `Requests` for code in an event loop."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def wait_for(
        self, *, count: int = 1, timeout_seconds: float = WAIT_SECONDS, **words: Unpack[FindWords]
    ) -> list[LoggedRequest]:
        """As `Requests.wait_for`."""
        return await _run_in_loop(self._requests._waiting(count, timeout_seconds, dict(words)))

    async def none(self, *, during_seconds: float = 0.0, **words: Unpack[FindWords]) -> None:
        """As `Requests.none`."""
        await _run_in_loop(self._requests._watching(during_seconds, dict(words)))


def _run(name: str, waiting: Generator[None, None, ResultT]) -> ResultT:
    while True:
        try:
            next(waiting)
        except StopIteration as end:
            return cast(ResultT, end.value)
        _refuse_in_loop(name)
        time.sleep(_LOOK_SECONDS)


async def _run_in_loop(waiting: Generator[None, None, ResultT]) -> ResultT:
    while True:
        try:
            next(waiting)
        except StopIteration as end:
            return cast(ResultT, end.value)
        await asyncio.sleep(_LOOK_SECONDS)


def _refuse_in_loop(name: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise WouldBlockError(
        f"{name} would block the running event loop: await rocketmq.requests.aio.{name}(...)"
    )
