"""The pull loop of one assigned queue of a push consumer: one pull after the other, long polling at the broker.

There is exactly one pull under way for each queue. The loop ends when its queue is dropped, or with an offset the
broker refuses, which is put right beside it. What each answer does is `pulling/after_pull.py`, when to hold back is
`rebalancing/flow_control.py`. Mirrors `DefaultMQPushConsumerImpl.pullMessage` and `PullMessageService`. Next:
`delivery/concurrent_delivery.py`.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from pocketmq.protocol.bodies.client import SubscriptionData
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.flags import PULL_COMMIT_OFFSET, PULL_SUBSCRIPTION, PULL_SUSPEND
from pocketmq.protocol.message.message_queue import MessageQueue

from ..errors import ClientError, RequestRefused
from ..offsets.offset_store import OffsetStore
from ..pulling.after_pull import after_pull, commit_with_pull, delay_after_refusal
from ..pulling.pull_api import PullApi
from ..rebalancing.flow_control import (
    BROKER_SUSPEND_MAX_MS,
    FLOW_CONTROL_DELAY_MS,
    PULL_TIMEOUT_MS,
    SUSPENDED_DELAY_MS,
    hold_back,
)
from ..rebalancing.process_queue import ProcessQueue
from ..settings.consumer_settings import PushConsumerSettings
from ..values.message import MessageExt

if TYPE_CHECKING:
    from ..delivery.statistics import ConsumerStatistics

_log = logging.getLogger(__name__)


class PullOwner(Protocol):
    """What a pull loop needs of its consumer."""

    settings: PushConsumerSettings
    pull_api: PullApi
    offsets: OffsetStore
    statistics: "ConsumerStatistics"
    is_paused: bool
    is_orderly: bool
    is_clustering: bool
    max_count: int
    max_size_mib: int

    group: str

    def subscription(self, topic: str) -> SubscriptionData | None: ...
    def submit(
        self, messages: list[MessageExt], queue: MessageQueue, state: ProcessQueue, *, is_new: bool
    ) -> None:
        """Hand pulled messages to the listener; `is_new`: an ordered queue has no task yet."""
        ...

    async def first_position(self, queue: MessageQueue) -> int: ...
    def may_carry_offset(self, queue: MessageQueue) -> bool:
        """Whether the broker may learn the queue's offset from a pull."""
        ...

    def correct_offset(self, queue: MessageQueue, state: ProcessQueue, offset: int) -> None:
        """Start to put an illegal offset right."""
        ...


class PullLoop:
    """Run `run` as a task of its own; cancel it when the queue is dropped."""

    def __init__(self, owner: PullOwner, queue: MessageQueue, state: ProcessQueue, offset: int) -> None:
        self._owner = owner
        self._queue = queue
        self._state = state
        self._offset = offset
        self._previously_locked = not owner.is_orderly or not owner.is_clustering

    async def run(self) -> None:
        """Pull until the queue is dropped or its offset has to be corrected."""
        while not self._state.dropped:
            self._state.note_pull()
            delay_ms = await self._delay_before()
            if delay_ms == 0:
                after_ms = await self._pull_once()
                if after_ms is None:
                    return
                delay_ms = after_ms
            if delay_ms > 0:
                await asyncio.sleep(delay_ms / 1000)

    async def _delay_before(self) -> int:
        """0 to pull now; else look again after so many ms."""
        owner, state = self._owner, self._state
        settings = owner.settings
        if owner.is_paused:
            return SUSPENDED_DELAY_MS
        held = hold_back(
            state,
            max_count=owner.max_count,
            max_size_mib=owner.max_size_mib,
            max_span=settings.consume_concurrently_max_span,
            orderly=owner.is_orderly,
        )
        if held is not None:
            return FLOW_CONTROL_DELAY_MS
        if self._previously_locked:
            return 0
        if not state.locked:
            return settings.pull_time_delay_mills_when_exception
        try:
            # The last owner may have committed between our reading of the offset and our lock.
            self._offset = await owner.first_position(self._queue)
        except (ClientError, ProtocolError) as error:
            _log.warning("first offset of %s in %s: %s", owner.group, self._queue, error)
            return settings.pull_time_delay_mills_when_exception
        self._previously_locked = True
        return 0

    async def _pull_once(self) -> int | None:
        """One pull and what follows from it: the delay before the next, None where the loop ends."""
        owner, queue, state = self._owner, self._queue, self._state
        settings = owner.settings
        subscription = owner.subscription(queue.topic)
        if subscription is None:
            return settings.pull_time_delay_mills_when_exception
        memory = owner.offsets.read(queue)
        carried = commit_with_pull(memory, clustering=owner.is_clustering, to_slave=False)
        if carried is not None and not owner.may_carry_offset(queue):
            carried = None
        sends_expression = settings.post_subscription_when_pull and not subscription.class_filter_mode
        sys_flag = PULL_SUSPEND | (PULL_SUBSCRIPTION if sends_expression else 0)
        if carried is not None:
            sys_flag |= PULL_COMMIT_OFFSET
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            result = await owner.pull_api.pull(
                queue,
                self._offset,
                subscription=subscription,
                sends_expression=sends_expression,
                sys_flag=sys_flag,
                max_count=settings.pull_batch_size,
                max_bytes=settings.pull_batch_size_in_bytes,
                commit_offset=memory if owner.is_clustering else 0,
                suspend_ms=BROKER_SUSPEND_MAX_MS,
                timeout_ms=PULL_TIMEOUT_MS,
                sub_version=subscription.sub_version,
            )
        except RequestRefused as refusal:
            _log.warning("pull of %s from %s: %s", owner.group, queue, refusal)
            return delay_after_refusal(refusal.code, settings.pull_time_delay_mills_when_exception)
        except (ClientError, ProtocolError) as error:
            _log.warning("pull of %s from %s: %s", owner.group, queue, error)
            return delay_after_refusal(None, settings.pull_time_delay_mills_when_exception)
        if state.dropped:
            return None
        messages = result.messages
        if messages:
            owner.statistics.pulled(queue.topic, len(messages), (loop.time() - began) * 1000)
            is_new = state.put(messages, result.max_offset)
            owner.submit(messages, queue, state, is_new=is_new)
        following = after_pull(
            result.status,
            result.next_offset,
            state,
            found=len(messages),
            pull_interval_ms=settings.pull_interval,
        )
        self._offset = following.next_offset
        if following.raise_to >= 0:
            owner.offsets.update(queue, following.raise_to, increase_only=True)
        if following.delay_ms is None:
            owner.correct_offset(queue, state, following.next_offset)
        return following.delay_ms
