"""The queues a push consumer pops: one loop each, which takes messages and hands them over to delivery.

The broker assigns them (`rebalancing/broker_assignments.py`), mostly as one queue -1 for each broker that stands for
all of its queues.
Nothing is locked and no offset is kept: each message is acknowledged by itself (`pop_settlement.py`). A queue that is
given up loses its unfinished messages to others when their time is over. Mirrors `PopProcessQueue` and
`DefaultMQPushConsumerImpl.popMessage`.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, Protocol

from pocketmq.protocol.bodies.client import SubscriptionData
from pocketmq.protocol.bodies.client_state import PopProcessQueueInfo
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..clock import wall_ms
from ..delivery.concurrent_results import max_reconsume_times
from ..errors import ClientError, RequestRefused
from ..hooks.hooks import FilterMessageContext, Hooks
from ..instance.instance import ClientInstance
from ..pulling.pull_api import only_wanted
from ..rebalancing.first_position import pop_init_mode
from ..rebalancing.flow_control import (
    BROKER_FLOW_CONTROL_DELAY_MS,
    FLOW_CONTROL_DELAY_MS,
    SUSPENDED_DELAY_MS,
)
from ..rebalancing.process_queue import PULL_MAX_IDLE_MS
from ..settings.consumer_settings import PushConsumerSettings
from ..values.message import MessageExt
from .pop_api import PopApi

if TYPE_CHECKING:
    from ..delivery.statistics import ConsumerStatistics

_log = logging.getLogger(__name__)

INVISIBLE_MS: Final = (5_000, 300_000)
DEFAULT_INVISIBLE_MS: Final = 60_000

DeliverPopped = Callable[[list[MessageExt], MessageQueue, "PopQueue"], None]


class PopQueue:
    """State of one popped queue: how many messages are out, and whether it is still ours."""

    __slots__ = ("dropped", "last_pop_ms", "waiting_acks")

    def __init__(self) -> None:
        self.dropped = False
        self.last_pop_ms = wall_ms()
        self.waiting_acks = 0

    @property
    def is_expired(self) -> bool:
        """Its loop has not popped for too long (official isPullExpired)."""
        return wall_ms() - self.last_pop_ms > PULL_MAX_IDLE_MS

    def info(self) -> PopProcessQueueInfo:
        return PopProcessQueueInfo(
            wait_ack_count=self.waiting_acks, droped=self.dropped, last_pop_timestamp=self.last_pop_ms
        )


class PopOwner(Protocol):
    """What the loops ask of their consumer."""

    is_paused: bool

    def subscription(self, topic: str) -> SubscriptionData | None: ...


class PopQueues:
    """Of one started consumer. `table` is what it pops now."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        settings: PushConsumerSettings,
        statistics: "ConsumerStatistics",
        owner: PopOwner,
        hooks: Hooks,
        deliver: DeliverPopped,
    ) -> None:
        self.api = PopApi(instance, group)
        self.table: dict[MessageQueue, PopQueue] = {}
        self._instance = instance
        self._group = group
        self._settings = settings
        self._statistics = statistics
        self._owner = owner
        self._hooks = hooks
        self._deliver = deliver
        self._loops: dict[PopQueue, asyncio.Task[None]] = {}
        self._stopped = False
        low, high = INVISIBLE_MS
        asked = settings.pop_invisible_time
        self._invisible_ms = asked if low <= asked <= high else DEFAULT_INVISIBLE_MS
        self._init_mode = pop_init_mode(settings.consume_from_where)
        self._max_times = max_reconsume_times(settings.max_reconsume_times)

    def exchange(self, topic: str, target: Collection[MessageQueue]) -> bool:
        """Pop exactly these queues of a topic; True where that changes anything."""
        changed = False
        for queue, state in list(self.table.items()):
            if queue.topic == topic and (queue not in target or state.is_expired):
                self._drop(queue, state)
                changed = True
        for queue in sorted(target):
            if queue not in self.table and not self._stopped:
                state = self.table[queue] = PopQueue()
                self._loops[state] = self._instance.spawn(self._run(queue, state), f"pop {queue}")
                changed = True
        return changed

    def keep_only(self, topics: Collection[str]) -> None:
        """Give up the queues of all other topics."""
        for queue, state in list(self.table.items()):
            if queue.topic not in topics:
                self._drop(queue, state)

    async def stop(self) -> None:
        """End every loop; what was popped may still be acknowledged."""
        self._stopped = True
        loops = list(self._loops.values())
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        self._loops.clear()

    def drop_all(self) -> None:
        """Give up everything at once: the consumer has left the group."""
        self.keep_only(())

    def _drop(self, queue: MessageQueue, state: PopQueue) -> None:
        state.dropped = True
        del self.table[queue]
        loop = self._loops.pop(state, None)
        if loop is not None:
            loop.cancel()

    # -- one queue

    async def _run(self, queue: MessageQueue, state: PopQueue) -> None:
        while not state.dropped:
            state.last_pop_ms = wall_ms()
            delay_ms = self._delay_before(state)
            if delay_ms == 0:
                delay_ms = await self._pop_once(queue, state)
            if delay_ms > 0:
                await asyncio.sleep(delay_ms / 1000)

    def _delay_before(self, state: PopQueue) -> int:
        """0 to pop now; else look again after so many ms."""
        if self._owner.is_paused:
            return SUSPENDED_DELAY_MS
        return FLOW_CONTROL_DELAY_MS if state.waiting_acks > self._settings.pop_threshold_for_queue else 0

    async def _pop_once(self, queue: MessageQueue, state: PopQueue) -> int:
        """One pop and what follows from it: the delay in ms before the next."""
        settings, subscription = self._settings, self._owner.subscription(queue.topic)
        if subscription is None:
            return settings.pull_time_delay_mills_when_exception
        began_ms = wall_ms()
        try:
            result = await self.api.pop(
                queue,
                subscription,
                max_count=settings.pop_batch_nums,
                invisible_ms=self._invisible_ms,
                init_mode=self._init_mode,
            )
        except (ClientError, ProtocolError) as error:
            _log.warning("pop of %s from %s: %s", self._group, queue, error)
            if isinstance(error, RequestRefused) and error.code == ResponseCode.FLOW_CONTROL:
                return BROKER_FLOW_CONTROL_DELAY_MS
            return settings.pull_time_delay_mills_when_exception
        if result.is_full:
            return settings.pull_time_delay_mills_when_exception
        messages = self._wanted(result.messages, queue, subscription)
        if not messages or state.dropped:
            return 0
        self._statistics.pulled(queue.topic, len(messages), wall_ms() - began_ms)
        state.waiting_acks += len(messages)
        self._deliver(messages, queue, state)
        return settings.pull_interval

    def _wanted(
        self, messages: list[MessageExt], queue: MessageQueue, subscription: SubscriptionData
    ) -> list[MessageExt]:
        """Acknowledge at once what the filters leave out, and what was tried too often."""
        wanted = only_wanted(messages, subscription)
        if self._hooks.filter and wanted:
            context = FilterMessageContext(self._group, [*wanted], queue, self._settings.unit_mode)
            wanted = self._hooks.filter_messages(context)
        wanted = [message for message in wanted if message.reconsume_times <= self._max_times]
        if len(wanted) != len(messages):
            kept = {id(message) for message in wanted}
            self.api.ack([message for message in messages if id(message) not in kept], queue.topic)
        return wanted
