"""The pull loop of one assigned queue of a push consumer: one pull after the other, long polling at the broker.

There is exactly one pull under way for each queue. The loop ends when its queue is dropped, or when the broker refuses
its offset; the offset is then corrected in the background. What each answer does is `pulling/after_pull.py`, when to
hold back is `rebalancing/flow_control.py`. Mirrors `DefaultMQPushConsumerImpl.pullMessage` and `PullMessageService`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.flags import PULL_COMMIT_OFFSET, PULL_SUBSCRIPTION, PULL_SUSPEND
from pocketmq.protocol.message.message_queue import MessageQueue

from ..delivery.delivery_parts import Delivery
from ..delivery.statistics import ConsumerStatistics
from ..errors import ClientError, RequestRefused
from ..offsets.broker_store import pull_may_carry
from ..offsets.offset_store import OffsetStore
from ..pulling.after_pull import after_pull, commit_with_pull, delay_after_refusal
from ..pulling.pull_api import PullApi, PullOrder
from ..rebalancing.flow_control import (
    BROKER_SUSPEND_MAX_MS,
    FLOW_CONTROL_DELAY_MS,
    PULL_TIMEOUT_MS,
    SUSPENDED_DELAY_MS,
    hold_back,
)
from ..rebalancing.process_queue import ProcessQueue
from ..rebalancing.subscriptions import Subscriptions
from ..settings.consumer_settings import PushConsumerSettings
from .pull_control import PullControl

_log = logging.getLogger(__name__)


class PullParts(msgspec.Struct, frozen=True):
    """What the pull loops of one consumer share."""

    group: str
    settings: PushConsumerSettings
    subscriptions: Subscriptions
    control: PullControl
    pull_api: PullApi
    offsets: OffsetStore
    statistics: ConsumerStatistics
    delivery: Delivery
    is_orderly: bool
    is_clustering: bool
    first_position: Callable[[MessageQueue], Awaitable[int]]
    correct_offset: Callable[[MessageQueue, ProcessQueue, int], None]
    """Starts the correction of an illegal offset."""


class PullLoop:
    """Run `run` as a task of its own; cancel it when the queue is dropped."""

    def __init__(
        self, parts: PullParts, queue: MessageQueue, process_queue: ProcessQueue, offset: int
    ) -> None:
        self._parts = parts
        self._queue = queue
        self._process_queue = process_queue
        self._offset = offset
        self._previously_locked = not parts.is_orderly or not parts.is_clustering

    async def run(self) -> None:
        """Pull until the queue is dropped or its offset has to be corrected."""
        while not self._process_queue.dropped:
            self._process_queue.note_pull()
            delay_ms = await self._delay_before()
            if delay_ms == 0:
                after_ms = await self._pull_once()
                if after_ms is None:
                    return
                delay_ms = after_ms
            if delay_ms > 0:
                await asyncio.sleep(delay_ms / 1000)

    async def _delay_before(self) -> int:
        """0 to pull now; else try again after so many ms."""
        parts, process_queue = self._parts, self._process_queue
        settings = parts.settings
        if parts.control.is_paused:
            return SUSPENDED_DELAY_MS
        held = hold_back(
            process_queue,
            max_count=parts.control.max_count,
            max_size_mib=parts.control.max_size_mib,
            max_span=settings.consume_concurrently_max_span,
            orderly=parts.is_orderly,
        )
        if held is not None:
            return FLOW_CONTROL_DELAY_MS
        if self._previously_locked:
            return 0
        if not process_queue.locked:
            return settings.pull_time_delay_mills_when_exception
        try:
            # The last owner may have committed between our reading of the offset and our lock.
            self._offset = await parts.first_position(self._queue)
        except (ClientError, ProtocolError) as error:
            _log.warning("first offset of %s in %s: %s", parts.group, self._queue, error)
            return settings.pull_time_delay_mills_when_exception
        self._previously_locked = True
        return 0

    async def _pull_once(self) -> int | None:
        """One pull and what follows from it: the delay before the next, None if the loop ends."""
        parts, queue, process_queue = self._parts, self._queue, self._process_queue
        settings = parts.settings
        subscription = parts.subscriptions.get(queue.topic)
        if subscription is None:
            return settings.pull_time_delay_mills_when_exception
        memory = parts.offsets.read(queue)
        carried = commit_with_pull(memory, clustering=parts.is_clustering)
        if carried is not None and not pull_may_carry(parts.offsets, queue):
            carried = None
        sends_expression = settings.post_subscription_when_pull and not subscription.class_filter_mode
        sys_flag = PULL_SUSPEND | (PULL_SUBSCRIPTION if sends_expression else 0)
        if carried is not None:
            sys_flag |= PULL_COMMIT_OFFSET
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            result = await parts.pull_api.pull(
                queue,
                PullOrder(
                    offset=self._offset,
                    subscription=subscription,
                    sends_expression=sends_expression,
                    sys_flag=sys_flag,
                    max_count=settings.pull_batch_size,
                    max_bytes=settings.pull_batch_size_in_bytes,
                    commit_offset=memory if parts.is_clustering else 0,
                    suspend_ms=BROKER_SUSPEND_MAX_MS,
                    timeout_ms=PULL_TIMEOUT_MS,
                    sub_version=subscription.sub_version,
                ),
            )
        except RequestRefused as refusal:
            _log.warning("pull of %s from %s: %s", parts.group, queue, refusal)
            return delay_after_refusal(refusal.code, settings.pull_time_delay_mills_when_exception)
        except (ClientError, ProtocolError) as error:
            _log.warning("pull of %s from %s: %s", parts.group, queue, error)
            return delay_after_refusal(None, settings.pull_time_delay_mills_when_exception)
        if process_queue.dropped:
            return None
        messages = result.messages
        if messages:
            parts.statistics.pulled(queue.topic, len(messages), (loop.time() - began) * 1000)
            starts_task = process_queue.put(messages, result.max_offset)
            parts.delivery.deliver(messages, queue, process_queue, starts_task=starts_task)
        following = after_pull(
            result, process_queue, asked=self._offset, pull_interval_ms=settings.pull_interval
        )
        self._offset = following.next_offset
        if following.raise_to >= 0:
            parts.offsets.update(queue, following.raise_to, increase_only=True)
        if following.delay_ms is None:
            parts.correct_offset(queue, process_queue, following.next_offset)
        return following.delay_ms
