"""Listener calls that end at once, settled together: nobody else runs between them, so nobody sees them one by one.

    call_before_each_suspend(work, call)   `await work`, but `call()` each time before `work` lets other tasks run
    InlineBatch                            messages of one queue whose listener succeeded, until they are settled

A listener that awaits something lets other tasks run in the middle of its call. What ended before is settled by then,
so that offsets, rates and the process queue say what they would say if each message was settled on its own.
"""

import logging
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from ..rebalancing.statistics import ConsumerStatistics
from ..values.message import MessageExt
from .settlement import PulledSettlement

_log = logging.getLogger(__name__)


@types.coroutine
def call_before_each_suspend(
    work: Coroutine[Any, Any, None], call: Callable[[], None]
) -> Generator[Any, Any, None]:
    """`await work`; calls `call` before each time that `work` waits for something."""
    try:
        awaited = work.send(None)
        while True:
            try:
                call()
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


class InlineBatch:
    """Of one worker. `taken` are messages whose listener was called; the last one's may be running."""

    __slots__ = ("_statistics", "began_ms", "settlement", "taken")

    def __init__(self, statistics: ConsumerStatistics) -> None:
        self._statistics = statistics
        self.taken: list[MessageExt] = []
        self.settlement: PulledSettlement | None = None
        self.began_ms = 0
        """When the first of `taken` was given to the listener."""

    def begin(self, settlement: PulledSettlement, now_ms: int) -> list[MessageExt]:
        """The next messages are of this queue. Returns `taken`, for the worker to append to."""
        self.settlement, self.began_ms = settlement, now_ms
        return self.taken

    def settle_finished(self) -> None:
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
        self._statistics.consumed(topic, len(taken), 0, now_ms - self.began_ms, calls=len(taken))
        try:
            settlement.finish(taken)
        finally:
            taken.clear()
