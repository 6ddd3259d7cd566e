"""The queues a push consumer pops: one loop each, which pops messages and gives them to delivery.

The broker assigns them (`rebalancing/broker_assignments.py`), mostly as one queue -1 for each broker, which means
all of its queues. Nothing is locked and no offset is kept: each message is acknowledged on its own
(`pop_settlement.py`). When a queue is given up, its unfinished messages become visible to others once their time is
over. Mirrors `DefaultMQPushConsumerImpl.popMessage`.
"""

import asyncio
import logging
from collections.abc import Collection

from pocketmq.protocol.bodies.client import SubscriptionData
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..clock import steady_ms
from ..delivery.concurrent_delivery import ConcurrentDelivery
from ..delivery.concurrent_results import concurrent_reconsume_limit
from ..delivery.statistics import ConsumerStatistics
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
from ..rebalancing.subscriptions import Subscriptions
from ..settings.consumer_settings import PushConsumerSettings
from ..values.message import MessageExt
from .pop_api import PopApi
from .pop_process_queue import PopProcessQueue
from .pop_settlement import PopSettlement
from .pull_control import PullControl

_log = logging.getLogger(__name__)


class PopQueues:
    """Of one started consumer. `table` is what it pops now."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        settings: PushConsumerSettings,
        subscriptions: Subscriptions,
        control: PullControl,
        statistics: ConsumerStatistics,
        hooks: Hooks,
        delivery: ConcurrentDelivery,
    ) -> None:
        self.api = PopApi(instance, group)
        self.table: dict[MessageQueue, PopProcessQueue] = {}
        self._instance = instance
        self._group = group
        self._settings = settings
        self._statistics = statistics
        self._subscriptions = subscriptions
        self._control = control
        self._hooks = hooks
        self._delivery = delivery
        self._loops: dict[PopProcessQueue, asyncio.Task[None]] = {}
        self._stopped = False
        self._init_mode = pop_init_mode(settings.consume_from_where)
        self._max_times = concurrent_reconsume_limit(settings.max_reconsume_times)

    def exchange(self, topic: str, target: Collection[MessageQueue]) -> bool:
        """Pop exactly these queues of a topic; True if that changes anything."""
        changed = False
        for queue, pop_queue in list(self.table.items()):
            if queue.topic == topic and (queue not in target or pop_queue.is_expired):
                self._drop(queue, pop_queue)
                changed = True
        for queue in sorted(target):
            if queue not in self.table and not self._stopped:
                pop_queue = self.table[queue] = PopProcessQueue()
                self._loops[pop_queue] = self._instance.spawn(self._run(queue, pop_queue), f"pop {queue}")
                changed = True
        return changed

    def keep_only(self, topics: Collection[str]) -> None:
        """Give up the queues of all other topics."""
        for queue, pop_queue in list(self.table.items()):
            if queue.topic not in topics:
                self._drop(queue, pop_queue)

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

    def _drop(self, queue: MessageQueue, pop_queue: PopProcessQueue) -> None:
        pop_queue.dropped = True
        del self.table[queue]
        loop = self._loops.pop(pop_queue, None)
        if loop is not None:
            loop.cancel()

    # -- one queue

    async def _run(self, queue: MessageQueue, pop_queue: PopProcessQueue) -> None:
        settlement = PopSettlement(
            self.api, queue.topic, pop_queue, self._max_times, self._settings.pop_invisible_time
        )
        while not pop_queue.dropped:
            pop_queue.last_pop_ms = steady_ms()
            delay_ms = self._delay_before(pop_queue)
            if delay_ms == 0:
                delay_ms = await self._pop_once(queue, pop_queue, settlement)
            if delay_ms > 0:
                await asyncio.sleep(delay_ms / 1000)

    def _delay_before(self, pop_queue: PopProcessQueue) -> int:
        """0 to pop now; else try again after so many ms."""
        if self._control.is_paused:
            return SUSPENDED_DELAY_MS
        return FLOW_CONTROL_DELAY_MS if pop_queue.waiting_acks > self._settings.pop_threshold_for_queue else 0

    async def _pop_once(
        self, queue: MessageQueue, pop_queue: PopProcessQueue, settlement: PopSettlement
    ) -> int:
        """One pop and what follows from it: the delay in ms before the next."""
        settings, subscription = self._settings, self._subscriptions.get(queue.topic)
        if subscription is None:
            return settings.pull_time_delay_mills_when_exception
        began_ms = steady_ms()
        try:
            result = await self.api.pop(
                queue,
                subscription,
                max_count=settings.pop_batch_nums,
                invisible_ms=settings.pop_invisible_time,
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
        if not messages or pop_queue.dropped:
            return 0
        self._statistics.pulled(queue.topic, len(messages), steady_ms() - began_ms)
        pop_queue.waiting_acks += len(messages)
        self._delivery.submit(messages, queue, settlement)
        return settings.pull_interval

    def _wanted(
        self, messages: list[MessageExt], queue: MessageQueue, subscription: SubscriptionData
    ) -> list[MessageExt]:
        """The messages for the listener. What the filters remove and what was tried too often is acknowledged at
        once."""
        wanted = only_wanted(messages, subscription)
        if self._hooks.filter and wanted:
            context = FilterMessageContext(self._group, [*wanted], queue, self._settings.unit_mode)
            wanted = self._hooks.filter_messages(context)
        wanted = [message for message in wanted if message.reconsume_times <= self._max_times]
        if len(wanted) != len(messages):
            kept = {id(message) for message in wanted}
            self.api.ack([message for message in messages if id(message) not in kept], queue.topic)
        return wanted
