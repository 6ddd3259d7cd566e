"""The queues a push consumer pops: one loop each, which pops messages and gives them to delivery.

The broker assigns them (`rebalancing/broker_assignments.py`), mostly as one queue -1 for each broker, which means
all of its queues. Nothing is locked and no offset is kept: each message is acknowledged on its own
(`pop_settlement.py`). When a queue is given up, its unfinished messages become visible to others once their time is
over. Mirrors `DefaultMQPushConsumerImpl.popMessage`.
"""

import asyncio
from collections.abc import Collection

from pocketmq.protocol.bodies.client import SubscriptionData
from pocketmq.protocol.message.message_queue import MessageQueue

from ..clock import steady_ms
from ..delivery.concurrent_delivery import ConcurrentDelivery
from ..delivery.concurrent_results import concurrent_reconsume_limit
from ..hooks.hooks import FilterMessageContext
from ..pulling.pull_api import only_wanted
from ..pulling.queue_loop import QueueLoop
from ..rebalancing.consumer_context import ConsumerContext
from ..rebalancing.first_position import pop_init_mode
from ..rebalancing.flow_control import FLOW_CONTROL_DELAY_MS, SUSPENDED_DELAY_MS, PullControl
from ..settings.consumer_settings import PushConsumerSettings
from ..values.message import MessageExt
from .pop_api import PopApi
from .pop_settlement import PopProcessQueue, PopSettlement


class PopQueues:
    """Of one started consumer. `table` is what it pops now."""

    def __init__(
        self,
        context: ConsumerContext[PushConsumerSettings],
        control: PullControl,
        delivery: ConcurrentDelivery,
    ) -> None:
        self.context, self.control, self.delivery = context, control, delivery
        self.api = PopApi(context.instance, context.group)
        self.table: dict[MessageQueue, PopProcessQueue] = {}
        self._loops: dict[PopProcessQueue, asyncio.Task[None]] = {}
        self._stopped = False

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
                self._loops[pop_queue] = self.context.instance.spawn(
                    _PopLoop(self, queue, pop_queue).run(), f"pop {queue}"
                )
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


class _PopLoop(QueueLoop):
    """Pops of one queue."""

    verb = "pop"

    def __init__(self, queues: PopQueues, queue: MessageQueue, pop_queue: PopProcessQueue) -> None:
        super().__init__(queues.context, queue, pop_queue)
        settings = queues.context.settings
        self._queues, self._pop_queue, self._settings = queues, pop_queue, settings
        self._init_mode = pop_init_mode(settings.consume_from_where)
        self._max_times = concurrent_reconsume_limit(settings.max_reconsume_times)
        self._settlement = PopSettlement(
            queues.api, queue.topic, pop_queue, self._max_times, settings.pop_invisible_time
        )

    async def delay_before(self) -> int:
        """0 to pop now; else try again after so many ms."""
        if self._queues.control.is_paused:
            return SUSPENDED_DELAY_MS
        is_full = self._pop_queue.waiting_acks > self._settings.pop_threshold_for_queue
        return FLOW_CONTROL_DELAY_MS if is_full else 0

    async def ask(self) -> int | None:
        """One pop and what follows from it."""
        settings, queue, pop_queue = self._settings, self.queue, self._pop_queue
        subscription = self.context.subscriptions.get(queue.topic)
        if subscription is None:
            return settings.pull_time_delay_mills_when_exception
        began_ms = steady_ms()
        result = await self._queues.api.pop(
            queue,
            subscription,
            max_count=settings.pop_batch_nums,
            invisible_ms=settings.pop_invisible_time,
            init_mode=self._init_mode,
        )
        if result.is_full:
            return settings.pull_time_delay_mills_when_exception
        messages = self._wanted(result.messages, subscription)
        if not messages or pop_queue.dropped:
            return 0
        self.context.statistics.pulled(queue.topic, len(messages), steady_ms() - began_ms)
        pop_queue.waiting_acks += len(messages)
        self._queues.delivery.submit(messages, queue, self._settlement)
        return settings.pull_interval

    def _wanted(self, messages: list[MessageExt], subscription: SubscriptionData) -> list[MessageExt]:
        """The messages for the listener. What the filters remove and what was tried too often is acknowledged at
        once."""
        wanted, hooks = only_wanted(messages, subscription), self.context.hooks
        if hooks.filter and wanted:
            wanted = hooks.filter_messages(
                FilterMessageContext(self.context.group, [*wanted], self.queue, self._settings.unit_mode)
            )
        wanted = [message for message in wanted if message.reconsume_times <= self._max_times]
        if len(wanted) != len(messages):
            kept = {id(message) for message in wanted}
            self._queues.api.ack(
                [message for message in messages if id(message) not in kept], self.queue.topic
            )
        return wanted
