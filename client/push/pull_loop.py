"""The pull loop of one assigned queue of a push consumer: one pull after the other, long polling at the broker.

There is exactly one pull under way for each queue. The loop ends when its queue is dropped, or when the broker refuses
its offset; the offset is then corrected in the background. What each answer does is `pulling/after_pull.py`, when to
hold back is `rebalancing/flow_control.py`. Mirrors `DefaultMQPushConsumerImpl.pullMessage` and `PullMessageService`.
"""

import asyncio
from collections.abc import Awaitable, Callable

from pocketmq.protocol.message.flags import PULL_COMMIT_OFFSET, PULL_SUBSCRIPTION, PULL_SUSPEND
from pocketmq.protocol.message.message_queue import MessageQueue

from ..delivery.concurrent_delivery import ConcurrentDelivery
from ..delivery.ordered_delivery import OrderedDelivery
from ..offsets.broker_store import pull_may_carry
from ..pulling.after_pull import after_pull, commit_with_pull
from ..pulling.pull_api import PullApi, PullOrder
from ..pulling.queue_loop import QueueLoop
from ..rebalancing.consumer_context import ConsumerContext
from ..rebalancing.flow_control import (
    BROKER_SUSPEND_MAX_MS,
    FLOW_CONTROL_DELAY_MS,
    PULL_TIMEOUT_MS,
    SUSPENDED_DELAY_MS,
    PullControl,
    hold_back,
)
from ..rebalancing.process_queue import ProcessQueue
from ..settings.consumer_settings import PushConsumerSettings


class PullLoop(QueueLoop):
    """`first_position` asks where to begin in a queue, `correct_offset` starts the correction of an illegal offset."""

    verb = "pull"
    context: ConsumerContext[PushConsumerSettings]

    def __init__(
        self,
        context: ConsumerContext[PushConsumerSettings],
        control: PullControl,
        pull_api: PullApi,
        delivery: ConcurrentDelivery | OrderedDelivery,
        first_position: Callable[[MessageQueue], Awaitable[int]],
        correct_offset: Callable[[MessageQueue, ProcessQueue, int], None],
        queue: MessageQueue,
        process_queue: ProcessQueue,
        offset: int,
    ) -> None:
        super().__init__(context, queue, process_queue)
        self._control = control
        self._pull_api = pull_api
        self._delivery = delivery
        self._first_position = first_position
        self._correct_offset = correct_offset
        self._process_queue = process_queue
        self._offset = offset
        self._is_orderly = isinstance(delivery, OrderedDelivery)
        self._previously_locked = not self._is_orderly or not context.is_clustering

    async def delay_before(self) -> int:
        """0 to pull now; else try again after so many ms."""
        control, process_queue, settings = self._control, self._process_queue, self.context.settings
        if control.is_paused:
            return SUSPENDED_DELAY_MS
        held = hold_back(
            process_queue,
            max_count=control.max_count,
            max_size_mib=control.max_size_mib,
            max_span=settings.consume_concurrently_max_span,
            orderly=self._is_orderly,
        )
        if held is not None:
            return FLOW_CONTROL_DELAY_MS
        if self._previously_locked:
            return 0
        if not process_queue.locked:
            return settings.pull_time_delay_mills_when_exception
        # The last owner may have committed between our reading of the offset and our lock.
        self._offset = await self._first_position(self.queue)
        self._previously_locked = True
        return 0

    async def ask(self) -> int | None:
        """One pull and what follows from it."""
        context, queue, process_queue = self.context, self.queue, self._process_queue
        settings, offsets = context.settings, context.offsets
        subscription = context.subscriptions.get(queue.topic)
        if subscription is None:
            return settings.pull_time_delay_mills_when_exception
        memory = offsets.read(queue)
        carried = commit_with_pull(memory, clustering=context.is_clustering)
        if carried is not None and not pull_may_carry(offsets, queue):
            carried = None
        sends_expression = settings.post_subscription_when_pull and not subscription.class_filter_mode
        sys_flag = PULL_SUSPEND | (PULL_SUBSCRIPTION if sends_expression else 0)
        if carried is not None:
            sys_flag |= PULL_COMMIT_OFFSET
        loop = asyncio.get_running_loop()
        began = loop.time()
        result = await self._pull_api.pull(
            queue,
            PullOrder(
                offset=self._offset,
                subscription=subscription,
                sends_expression=sends_expression,
                sys_flag=sys_flag,
                max_count=settings.pull_batch_size,
                max_bytes=settings.pull_batch_size_in_bytes,
                commit_offset=memory if context.is_clustering else 0,
                suspend_ms=BROKER_SUSPEND_MAX_MS,
                timeout_ms=PULL_TIMEOUT_MS,
                sub_version=subscription.sub_version,
            ),
        )
        if process_queue.dropped:
            return None
        messages = result.messages
        if messages:
            context.statistics.pulled(queue.topic, len(messages), (loop.time() - began) * 1000)
            starts_task = process_queue.put(messages, result.max_offset)
            self._delivery.deliver(messages, queue, process_queue, starts_task=starts_task)
        following = after_pull(
            result, process_queue, asked=self._offset, pull_interval_ms=settings.pull_interval
        )
        self._offset = following.next_offset
        if following.raise_to >= 0:
            offsets.update(queue, following.raise_to, increase_only=True)
        if following.delay_ms is None:
            self._correct_offset(queue, process_queue, following.next_offset)
        return following.delay_ms
