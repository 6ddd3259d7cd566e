"""The queues a lite pull consumer reads: a pull loop for each, and the batches that wait for `poll`.

Queues come from rounds of the rebalancer or from `assign`. Mirrors the pull tasks of `DefaultLitePullConsumerImpl`,
`AssignedMessageQueue` and `RebalanceLitePullImpl`.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.flags import PULL_LITE_PULL_MESSAGE, PULL_SUBSCRIPTION, PULL_SUSPEND
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..clock import steady_ms
from ..errors import ClientError, RequestRefused
from ..hooks.hooks import Hooks
from ..instance.instance import ClientInstance
from ..offsets.offset_store import OffsetStore, read_offset
from ..rebalancing.flow_control import (
    BROKER_FLOW_CONTROL_DELAY_MS,
    FLOW_CONTROL_DELAY_MS,
    SUSPENDED_DELAY_MS,
    hold_back,
)
from ..rebalancing.held_queues import HeldQueues
from ..rebalancing.process_queue import ProcessQueue
from ..rebalancing.queue_table import QueueTable
from ..rebalancing.subscriptions import Subscriptions, subscription_of
from ..settings.consumer_settings import LitePullConsumerSettings
from ..values.message import MessageExt
from ..values.results import PullResult, PullStatus
from .after_pull import delay_if_again
from .pull_api import PullApi, PullOrder

_log = logging.getLogger(__name__)

FIRST_OFFSET_RETRY_MS: Final = 3_000
NO_POSITION: Final = -1

QueuesChanged = Callable[[str, set[MessageQueue], set[MessageQueue]], None]
"""Topic, all its queues, those of this member."""


class Assigned:
    """One queue that is read. Offsets are -1 while unknown."""

    def __init__(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        self.queue = queue
        self.process_queue = process_queue
        self.pull_offset = NO_POSITION
        self.consume_offset = NO_POSITION
        self.paused = False
        self.task: asyncio.Task[None] | None = None


class LiteQueues(HeldQueues):
    """Of one started consumer. `ready` holds batches in the order they arrived."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        settings: LitePullConsumerSettings,
        subscriptions: Subscriptions,
        offsets: OffsetStore,
        on_queues_changed: QueuesChanged | None,
        hooks: Hooks,
    ) -> None:
        super().__init__(
            instance, group, settings, subscriptions, offsets, QueueTable(), consume_passively=False
        )
        self.settings = settings
        self.pull_api = PullApi(instance, group, hooks, unit_mode=settings.unit_mode)
        self.assigned: dict[MessageQueue, Assigned] = {}
        self.ready: deque[tuple[Assigned, ProcessQueue, list[MessageExt]]] = deque()
        self.arrived = asyncio.Event()
        self._on_queues_changed = on_queues_changed

    async def rebalance(self) -> bool:
        """Share the subscribed topics with the group."""
        found_all = await self.find_missing_topics()
        return await self._rebalancer.round(list(self._subscriptions)) and found_all

    def assign(self, queues: Iterable[MessageQueue]) -> None:
        """Read exactly these."""
        wanted = set(queues)
        for queue in [queue for queue in self.assigned if queue not in wanted]:
            self.forget(queue)
        for queue in sorted(wanted - self.assigned.keys()):
            assigned = self.assigned[queue] = Assigned(queue, ProcessQueue(steady_ms))
            self.start_pulling(assigned)

    async def stop(self) -> None:
        """End every pull loop; the queues stay assigned."""
        self._stopped = True
        self.arrived.set()
        tasks = [assigned.task for assigned in self.assigned.values() if assigned.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def take_ready(self) -> list[MessageExt] | None:
        """The next batch of a queue that is still assigned; its offset is what a commit would store."""
        while self.ready:
            assigned, process_queue, messages = self.ready.popleft()
            if process_queue.dropped or assigned.process_queue is not process_queue:
                continue
            offset = process_queue.remove(messages)
            if offset >= 0:
                assigned.consume_offset = offset
            return messages
        return None

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Forget what was pulled and read on from an offset."""
        assigned = self.assigned.get(queue)
        if assigned is None:
            return
        assigned.process_queue.clear()
        self.ready = deque(item for item in self.ready if item[0] is not assigned)
        assigned.pull_offset = assigned.consume_offset = offset
        self.offsets.update(queue, offset)
        self.start_pulling(assigned)

    # -- one queue

    def start_pulling(self, assigned: Assigned) -> None:
        if assigned.task is not None:
            assigned.task.cancel()
            assigned.task = None
        if not self._stopped:
            assigned.task = self._instance.spawn(self._pull(assigned), f"pull {assigned.queue}")

    async def _pull(self, assigned: Assigned) -> None:
        """The pull loop of one queue, while it is assigned."""
        while not assigned.process_queue.dropped:
            assigned.process_queue.note_pull()
            delay_ms = self._delay_before(assigned)
            if delay_ms == 0:
                delay_ms = await self._pull_once(assigned)
            if delay_ms:
                await asyncio.sleep(delay_ms / 1000)

    def _delay_before(self, assigned: Assigned) -> int:
        settings = self.settings
        if assigned.paused:
            return SUSPENDED_DELAY_MS
        if len(self.ready) * settings.pull_batch_size > settings.pull_threshold_for_all:
            return FLOW_CONTROL_DELAY_MS
        held = hold_back(
            assigned.process_queue,
            max_count=settings.pull_threshold_for_queue,
            max_size_mib=settings.pull_threshold_size_for_queue,
            max_span=settings.consume_max_span,
            orderly=False,
        )
        return 0 if held is None else FLOW_CONTROL_DELAY_MS

    async def _pull_once(self, assigned: Assigned) -> int:
        """One pull: the delay in ms before the next."""
        settings, queue = self.settings, assigned.queue
        try:
            offset = await self._next_offset(assigned)
        except (ClientError, ProtocolError) as error:
            _log.warning("first offset of %s in %s: %s", self.group, queue, error)
            return FIRST_OFFSET_RETRY_MS
        subscription = self._subscriptions.get(queue.topic) or subscription_of(queue.topic, "*")
        try:
            result = await self.pull_api.pull(
                queue,
                PullOrder(
                    offset=offset,
                    subscription=subscription,
                    sends_expression=True,
                    sys_flag=PULL_SUSPEND | PULL_SUBSCRIPTION | PULL_LITE_PULL_MESSAGE,
                    max_count=settings.pull_batch_size,
                    suspend_ms=settings.broker_suspend_max_time_millis,
                    timeout_ms=settings.consumer_timeout_millis_when_suspend,
                ),
            )
        except RequestRefused as refusal:
            if refusal.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                return 1  # the next pull uses the old form
            _log.warning("pull of %s from %s: %s", self.group, queue, refusal)
            if refusal.code == ResponseCode.FLOW_CONTROL:
                return BROKER_FLOW_CONTROL_DELAY_MS
            return settings.pull_time_delay_mills_when_exception
        except (ClientError, ProtocolError) as error:
            _log.warning("pull of %s from %s: %s", self.group, queue, error)
            return settings.pull_time_delay_mills_when_exception
        self._take(assigned, result)
        return delay_if_again(result, offset)

    async def _next_offset(self, assigned: Assigned) -> int:
        """Where the next pull begins: where the last one ended, or at the first position."""
        if assigned.pull_offset < 0:
            assigned.pull_offset = await self.first_position(assigned.queue)
        return assigned.pull_offset

    def _take(self, assigned: Assigned, result: PullResult) -> None:
        if assigned.process_queue.dropped:
            return
        if result.status is PullStatus.OFFSET_ILLEGAL:
            _log.warning(
                "the offset of %s in %s is illegal, going on at %d",
                self.group,
                assigned.queue,
                result.next_offset,
            )
        if result.status is PullStatus.FOUND and result.messages:
            assigned.process_queue.put(result.messages, result.max_offset)
            self.ready.append((assigned, assigned.process_queue, result.messages))
            self.arrived.set()
        assigned.pull_offset = result.next_offset

    def forget(self, queue: MessageQueue) -> None:
        assigned = self.assigned.pop(queue, None)
        if assigned is not None:
            assigned.process_queue.dropped = True
            if assigned.task is not None:
                assigned.task.cancel()
            self.pull_api.forget(queue)

    def remember(self, queues: Iterable[MessageQueue]) -> None:
        """The offsets of polled messages are those that the next persist sends (official commitAll)."""
        for queue in queues:
            assigned = self.assigned[queue]
            if assigned.consume_offset >= 0 and not assigned.process_queue.dropped:
                self.offsets.update(queue, assigned.consume_offset)

    # -- QueueKeeper

    async def stored_offset(self, queue: MessageQueue) -> int:
        return await read_offset(self.offsets, queue)

    def end(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        if queue in self.assigned and self.assigned[queue].process_queue is process_queue:
            self.forget(queue)

    async def release(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        await self.offsets.persist(queue)
        self.offsets.remove(queue)
        return True

    def begin(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int) -> None:
        if self._stopped:
            return
        assigned = self.assigned[queue] = Assigned(queue, process_queue)
        assigned.pull_offset = offset
        self.start_pulling(assigned)

    async def queues_changed(self, topic: str, known: set[MessageQueue], assigned: set[MessageQueue]) -> None:
        if self._on_queues_changed is not None:
            self._on_queues_changed(topic, known, assigned)
