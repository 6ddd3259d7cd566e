"""Popped messages after their listener: acknowledges them, or has them delivered again later.

A failed message stays invisible for longer each time; the broker then delivers it once more, from the group's pop retry
topic, with its tries counted. After the last try it is acknowledged once it is four hours old: the broker moves no
popped message to the dead letters. A batch whose invisible time is over is neither acknowledged nor put off: another
consumer has it by then. Mirrors `ConsumeMessagePopConcurrentlyService`.
"""

import logging
from collections.abc import Sequence
from typing import Final

from pocketmq.protocol.bodies.client_state import PopProcessQueueInfo
from pocketmq.protocol.errors import ProtocolError

from ..clock import steady_ms, wall_ms
from ..delivery.concurrent_results import first_failed
from ..rebalancing.process_queue import PULL_MAX_IDLE_MS
from ..values.listener_returns import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus
from ..values.message import MessageExt
from .pop_api import PopApi
from .pop_receipts import receipt_of

_log = logging.getLogger(__name__)

POP_DELAY_SECONDS: Final = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
"""Official popDelayLevel: how long a message stays hidden, by delay level or number of tries."""


def is_pop_timeout(messages: Sequence[MessageExt]) -> bool:
    """Whether the time of a batch is over, as its first message's receipt says."""
    try:
        return wall_ms() >= receipt_of(messages[0]).visible_again_ms
    except ProtocolError:
        return True


def retry_invisible_seconds(delay_level: int, reconsume_times: int) -> int:
    """How long a failed message stays hidden; level 0 goes by its tries."""
    index = delay_level or reconsume_times
    return POP_DELAY_SECONDS[min(max(index, 0), len(POP_DELAY_SECONDS) - 1)]


def level_after_last_try(age_ms: int) -> int | None:
    """Delay level of a message that was tried too often, by its age; None: it is old enough to be given up."""
    if age_ms > POP_DELAY_SECONDS[-1] * 1000 * 2:
        return None
    return sum(age_ms >= seconds * 1000 for seconds in POP_DELAY_SECONDS)


class PopProcessQueue:
    """The state of one popped queue: how many messages are unacknowledged, and whether it is still ours. Owned by the
    event loop."""

    __slots__ = ("dropped", "last_pop_ms", "waiting_acks")

    def __init__(self) -> None:
        self.dropped = False
        self.last_pop_ms = steady_ms()
        self.waiting_acks = 0

    def note_pull(self) -> None:
        """A pop is tried now; one that is held back counts too."""
        self.last_pop_ms = steady_ms()

    @property
    def is_expired(self) -> bool:
        """Its loop has not popped for too long (official isPullExpired)."""
        return steady_ms() - self.last_pop_ms > PULL_MAX_IDLE_MS

    def info(self) -> PopProcessQueueInfo:
        """The queue's line in the answer to GET_CONSUMER_RUNNING_INFO."""
        return PopProcessQueueInfo(
            wait_ack_count=self.waiting_acks, droped=self.dropped, last_pop_timestamp=self.last_pop_ms
        )


class PopSettlement:
    """For one popped queue. `topic` is the one popped, `max_times` the tries after which a message is given up."""

    def __init__(
        self, api: PopApi, topic: str, pop_queue: PopProcessQueue, max_times: int, invisible_ms: int
    ) -> None:
        self._api = api
        self._topic = topic
        self._pop_queue = pop_queue
        self._max_times = max_times
        self.listener_limit_ms = invisible_ms

    def accepts(self, messages: Sequence[MessageExt]) -> bool:
        """Messages whose time is over belong to another consumer by now."""
        if is_pop_timeout(messages):
            self._pop_queue.waiting_acks -= len(messages)
            return False
        return not self._pop_queue.dropped

    async def settle(
        self,
        messages: Sequence[MessageExt],
        status: ConsumeConcurrentlyStatus,
        context: ConsumeConcurrentlyContext,
    ) -> list[MessageExt]:
        """Acknowledge what succeeded and put off what failed. Nothing is tried again here."""
        self._pop_queue.waiting_acks -= len(messages)
        if self._pop_queue.dropped or is_pop_timeout(messages):
            _log.warning("popped messages are dropped, or their time is over: %r", list(messages))
            return []
        failed = first_failed(status, context.ack_index, len(messages))
        if failed:
            self._api.ack(messages[:failed], self._topic)
        for message in messages[failed:]:
            if message.reconsume_times >= self._max_times:
                self._give_up(message)
            else:
                self._redeliver_later(message, context.delay_level_when_next_consume)
        return []

    def _give_up(self, message: MessageExt) -> None:
        level = level_after_last_try(wall_ms() - message.born_timestamp)
        if level is None:
            _log.warning("consumed too many times, acknowledging %r", message)
            self._api.ack([message], self._topic)
        else:
            self._redeliver_later(message, level)

    def _redeliver_later(self, message: MessageExt, delay_level: int) -> None:
        seconds = retry_invisible_seconds(delay_level, message.reconsume_times)
        self._api.change_invisible_time(message, self._topic, seconds * 1000)
