"""What a client waits for, said once while a server does not answer, and once when it does.

A request that is not answered within `SAY_AFTER_SECONDS` logs one line: what does not answer, and for how long it is
tried. Of several requests that wait for the same, one speaks. Of pulls in flight, which are not waited for one by one,
the silence is noted. Jobs print these lines (`jobs/answers/run.py`).
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

_log = logging.getLogger("pocketmq.pipeline")

SAY_AFTER_SECONDS: Final = 2.0


def span(milliseconds: int) -> str:
    """A time as a person writes it: 30 s, 200 ms."""
    return f"{milliseconds / 1000:g} s" if milliseconds >= 1000 else f"{milliseconds} ms"


class WaitLog:
    """What the requests of one client have said."""

    def __init__(self) -> None:
        self.say_after_seconds = SAY_AFTER_SECONDS
        self.said: set[str] = set()
        self.waiting = 0
        """Requests under way that say themselves what they wait for."""


class Waiting:
    """One request that may wait, as a context manager on the loop. `reason` is why it was not answered so far."""

    __slots__ = ("_begun", "_limit_ms", "_notes", "_said", "_timer", "_what", "reason")
    _counted = 1

    def __init__(self, notes: WaitLog, what: str, limit_ms: int) -> None:
        self._notes = notes
        self._what = what
        self._limit_ms = limit_ms
        self._timer: asyncio.TimerHandle | None = None
        self._begun = 0.0
        self._said = ""
        self.reason = ""

    def __enter__(self) -> "Waiting":
        self._notes.waiting += self._counted
        if self._limit_ms > self._notes.say_after_seconds * 1000:
            self._begun = time.monotonic()
            self._set_timer()
        return self

    def _set_timer(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._notes.say_after_seconds, self._say)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._notes.waiting -= self._counted
        if self._timer is not None:
            self._timer.cancel()
        if self._said:
            self._notes.said.discard(self._said)
            if kind is None:
                _log.warning("%s: answered after %.0f s", self._what, time.monotonic() - self._begun)

    def _say(self) -> None:
        text = self.reason or f"{self._what}: no answer"
        if text not in self._notes.said:
            self._said = text
            self._notes.said.add(text)
            _log.warning("%s; trying until %s are over", text, span(self._limit_ms))


class Silence(Waiting):
    """Requests in flight together: it says that for a while none of them was answered.

    `answered` counts the answers. Requests that are repeated, each in a `Waiting` of its own, say more themselves.
    """

    __slots__ = ("_answered", "_count")
    _counted = 0

    def __init__(self, notes: WaitLog, what: str, limit_ms: int, answered: Callable[[], int]) -> None:
        super().__init__(notes, what, limit_ms)
        self._answered = answered
        self._count = answered()

    def _say(self) -> None:
        if self._answered() == self._count and not self._notes.waiting:
            super()._say()
            return
        self._count, self._begun = self._answered(), time.monotonic()
        self._set_timer()
