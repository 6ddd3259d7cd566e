"""Listener calls that end at once, settled together: nobody else runs between them, so nobody sees them one by one.

    before_waits(work, note)   `await work`, but `note` is called each time before `work` lets other tasks run
    QuickRun                   messages of one queue whose listener succeeded, until they are settled

A listener that awaits something lets other tasks run in the middle of its call. What ended before is settled by then,
so that offsets, rates and the process queue say what they would say if each message was settled on its own.
"""

import logging
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from ..values.message import MessageExt
from .delivery_parts import DeliveryParts
from .settlement import PulledSettlement

_log = logging.getLogger(__name__)


@types.coroutine
def before_waits(work: Coroutine[Any, Any, None], note: Callable[[], None]) -> Generator[Any, Any, None]:
    """`await work`; calls `note` before each time that `work` waits for something."""
    try:
        awaited = work.send(None)
        while True:
            try:
                note()
            except Exception:  # an offset store of the user's; the listener must not pay for it
                _log.exception("messages that were consumed could not be settled")
            try:
                answer = yield awaited
            except BaseException as error:
                awaited = work.throw(error)
            else:
                awaited = work.send(answer)
    except StopIteration:
        return


class QuickRun:
    """Of one worker. `taken` are messages whose listener was called; the last one's may be running."""

    __slots__ = ("_parts", "began_ms", "settlement", "taken")

    def __init__(self, parts: DeliveryParts) -> None:
        self._parts = parts
        self.taken: list[MessageExt] = []
        self.settlement: PulledSettlement | None = None
        self.began_ms = 0
        """When the first of `taken` was given to the listener."""

    def begin(self, settlement: PulledSettlement, now_ms: int) -> list[MessageExt]:
        """The next messages are of this queue. Returns `taken`, for the worker to append to."""
        self.settlement, self.began_ms = settlement, now_ms
        return self.taken

    def all_but_last(self) -> None:
        """Settle what has ended: the listener of the last message has not, or did not succeed."""
        taken = self.taken
        if taken:
            last = taken.pop()
            try:
                self.settle(last.consume_start_ms)
            finally:
                taken.append(last)
                self.began_ms = last.consume_start_ms

    def settle(self, now_ms: int) -> None:
        """The listener succeeded with all of `taken`: count them, and move the offset beyond them."""
        taken, settlement = self.taken, self.settlement
        if not taken or settlement is None:
            return
        topic = settlement.queue.topic
        self._parts.statistics.consumed(topic, len(taken), 0, now_ms - self.began_ms, calls=len(taken))
        try:
            settlement.finish(taken)
        finally:
            taken.clear()
