"""The loop of one queue: it asks for messages again and again, and pauses between where it has to.

What it asks differs: `lite_pull_queues.py`, and in `push/` `push_queues.py` and `pop_queues.py`. The answer of a pull:

    reply code  status          position        then
    0           FOUND           nextBegin       pull on, after pull_interval if messages were left by the filter
    19, 20      NO_NEW_MSG,     nextBegin       raise the memory offset if nothing is cached, pull on; after 20 ms if a
                NO_MATCHED_MSG                  20 says "again" at the same offset, as a slave does that lags
    21          OFFSET_ILLEGAL  nextBegin       correct (below); this pull loop ends
    other       refused         as it was       pull again after 1 s, FLOW_CONTROL after 20 ms

The correction, in this order: drop the process queue; set and freeze the memory offset; persist it; remove the queue
as rebalance does (persists again, unfreezes, unlocks); rebalance at once, which reads the offset just stored. Dropping
first makes results of running listeners void; persisting before removing is what makes the new position stick. 4.9
clients (and 5.0, 5.1) wait 10 s before the correction, freeze nothing, and leave the queue idle until the next round.

Raising the memory offset lets a group make progress at the broker that filters everything out, or only waits.
Official classes: PullStatus, DefaultMQPushConsumerImpl.pullMessage.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..errors import ClientError, RequestRefused
from ..rebalancing.consumer_context import ConsumerContext
from ..rebalancing.flow_control import BROKER_FLOW_CONTROL_DELAY_MS
from ..rebalancing.process_queue import PopProcessQueue, ProcessQueue
from ..values.results import PullResult, PullStatus


def delay_if_again(result: PullResult, asked: int) -> int:
    """The pause in ms after a pull at `asked` that brought no progress although the broker did not hold it."""
    is_again = result.status is PullStatus.NO_MATCHED_MSG and result.next_offset == asked
    return BROKER_FLOW_CONTROL_DELAY_MS if is_again else 0


_log = logging.getLogger(__name__)


class QueueLoop(ABC):
    """Run `run` as a task of its own; cancel it when the queue is dropped."""

    verb: ClassVar[str]
    """For the log."""

    def __init__(
        self, context: ConsumerContext[Any], queue: MessageQueue, state: ProcessQueue | PopProcessQueue
    ) -> None:
        self.context = context
        self.queue = queue
        self._state = state

    async def run(self) -> None:
        """Ask until the queue is dropped or `ask` ends the loop."""
        pause_ms = self.context.settings.pull_time_delay_mills_when_exception
        while not self._state.dropped:
            self._state.note_pull()
            try:
                delay_ms = await self.delay_before() or await self.ask()
            except (ClientError, ProtocolError) as error:
                _log.warning("%s of %s from %s: %s", self.verb, self.context.group, self.queue, error)
                delay_ms = delay_after_failure(error, pause_ms)
            if delay_ms is None:
                return
            if delay_ms > 0:
                await asyncio.sleep(delay_ms / 1000)

    @abstractmethod
    async def delay_before(self) -> int:
        """0 to ask now; else try again after so many ms."""

    @abstractmethod
    async def ask(self) -> int | None:
        """One request and what follows from it: the delay in ms before the next, None if the loop ends."""


def delay_after_failure(error: Exception, pause_ms: int) -> int:
    """The pause in ms after a request that was refused or not answered."""
    is_busy = isinstance(error, RequestRefused) and error.code == ResponseCode.FLOW_CONTROL
    return BROKER_FLOW_CONTROL_DELAY_MS if is_busy else pause_ms
