"""What a client waits for, said once while a server does not answer, and once when it does.

A request that is not answered within `SAY_AFTER_SECONDS` logs one line: what does not answer, and for how long it is
tried. Of several requests that wait for the same, one speaks. Jobs print these lines (`jobs/run.py`).
"""

import asyncio
import logging
import time
from typing import Final

_log = logging.getLogger("pocketmq.pipeline")

SAY_AFTER_SECONDS: Final = 2.0


def span(milliseconds: int) -> str:
    """A time as a person writes it: 30 s, 200 ms."""
    return f"{milliseconds / 1000:g} s" if milliseconds >= 1000 else f"{milliseconds} ms"


class WaitingNotes:
    """What the requests of one client have said."""

    def __init__(self, *, say_after_seconds: float = SAY_AFTER_SECONDS) -> None:
        self.say_after_seconds = say_after_seconds
        self.said: set[str] = set()


class Waiting:
    """One request that may wait, as a context manager on the loop. `reason` is why it was not answered so far."""

    __slots__ = ("_begun", "_limit_ms", "_notes", "_said", "_timer", "_what", "reason")

    def __init__(self, notes: WaitingNotes, what: str, limit_ms: int) -> None:
        self._notes = notes
        self._what = what
        self._limit_ms = limit_ms
        self._timer: asyncio.TimerHandle | None = None
        self._begun = 0.0
        self._said = ""
        self.reason = ""

    def __enter__(self) -> "Waiting":
        after = self._notes.say_after_seconds
        if self._limit_ms > after * 1000:
            self._begun = time.monotonic()
            self._timer = asyncio.get_running_loop().call_later(after, self._say)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
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
