"""The queues a push consumer pops: one loop each, which pops messages and gives them to delivery.

The broker assigns them, mostly as one queue -1 for each broker, which means all of its queues. Nothing is locked and no
offset is kept: each message is acknowledged on its own. When a queue is given up, its unfinished messages become
visible to others once their time is over.

A failed message stays invisible for longer each time; the broker then delivers it once more, from the group's pop retry
topic, with its tries counted. After the last try it is acknowledged once it is four hours old: the broker moves no
popped message to the dead letters. A batch whose invisible time is over is neither acknowledged nor put off: another
consumer has it by then. Mirrors `DefaultMQPushConsumerImpl.popMessage` and `ConsumeMessagePopConcurrentlyService`.
"""

import asyncio
import logging
from collections.abc import Collection, Sequence
from typing import Final

from pocketmq.protocol.bodies.client import SubscriptionData
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.message_queue import MessageQueue

from ..clock import steady_ms, wall_ms
from ..delivery.concurrent_delivery import ConcurrentDelivery
from ..delivery.send_back import concurrent_reconsume_limit
from ..hooks.hooks import FilterMessageContext
from ..pulling.pull_api import only_wanted
from ..pulling.queue_loop import QueueLoop
from ..rebalancing.consumer_context import ConsumerContext
from ..rebalancing.first_position import pop_init_mode
from ..rebalancing.flow_control import FLOW_CONTROL_DELAY_MS, SUSPENDED_DELAY_MS, PullControl
from ..rebalancing.process_queue import PopProcessQueue
from ..settings.consumer_settings import PushConsumerSettings
from ..tasks import cancelled
from ..values.message import MessageExt
from .pop_api import PopApi, receipt_of

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

    async def settle(self, messages: Sequence[MessageExt], failed: int, delay_level: int) -> list[MessageExt]:
        """Acknowledge what succeeded and put off what failed. Nothing is tried again here."""
        self._pop_queue.waiting_acks -= len(messages)
        if self._pop_queue.dropped or is_pop_timeout(messages):
            _log.warning("popped messages are dropped, or their time is over: %r", list(messages))
            return []
        if failed:
            self._api.ack(messages[:failed], self._topic)
        for message in messages[failed:]:
            if message.reconsume_times >= self._max_times:
                self._give_up(message)
            else:
                self._redeliver_later(message, delay_level)
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
                pop_queue = self.table[queue] = PopProcessQueue(steady_ms)
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
        await cancelled(list(self._loops.values()))
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
        if self._queues.control.is_paused:
            return SUSPENDED_DELAY_MS
        is_full = self._pop_queue.waiting_acks > self._settings.pop_threshold_for_queue
        return FLOW_CONTROL_DELAY_MS if is_full else 0

    async def ask(self) -> int | None:
        settings, queue, pop_queue = self._settings, self.queue, self._pop_queue
        subscription = self.context.subscriptions.get(queue.topic)
        if subscription is None:
            return settings.pull_time_delay_mills_when_exception
        began_ms = steady_ms()
        popped = await self._queues.api.pop(
            queue,
            subscription,
            max_count=settings.pop_batch_nums,
            invisible_ms=settings.pop_invisible_time,
            init_mode=self._init_mode,
        )
        if popped is None:
            return settings.pull_time_delay_mills_when_exception
        messages = self._wanted(popped, subscription)
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
