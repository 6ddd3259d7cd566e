"""The loop of one queue: it asks for messages again and again, and pauses between where it has to.

What it asks differs: `lite_pull_queues.py`, and in `push/` `pull_loop.py` and `pop_queues.py`.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..errors import ClientError, RequestRefused
from ..rebalancing.consumer_context import ConsumerContext
from ..rebalancing.flow_control import BROKER_FLOW_CONTROL_DELAY_MS

_log = logging.getLogger(__name__)


class QueueState(Protocol):
    """A process queue, as its loop sees it."""

    dropped: bool

    def note_pull(self) -> None:
        """A request is tried now; one that is held back counts too."""
        ...


class QueueLoop(ABC):
    """Run `run` as a task of its own; cancel it when the queue is dropped."""

    verb: ClassVar[str]
    """For the log."""

    def __init__(self, context: ConsumerContext[Any], queue: MessageQueue, state: QueueState) -> None:
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
