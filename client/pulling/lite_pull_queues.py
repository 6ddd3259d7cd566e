"""The queues a lite pull consumer reads: a pull loop for each, and the batches that wait for `poll`.

Queues come from rounds of the rebalancer or from `assign`. Mirrors the pull tasks of `DefaultLitePullConsumerImpl`,
`AssignedMessageQueue` and `RebalanceLitePullImpl`.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

import msgspec
from pocketmq.protocol.bodies.client_state import ConsumerRunningInfo
from pocketmq.protocol.message.flags import PULL_LITE_PULL_MESSAGE, PULL_SUBSCRIPTION, PULL_SUSPEND
from pocketmq.protocol.message.message_queue import MessageQueue

from ..clock import steady_ms
from ..rebalancing.consumer_context import ConsumerContext
from ..rebalancing.flow_control import FLOW_CONTROL_DELAY_MS, SUSPENDED_DELAY_MS, is_over_limit
from ..rebalancing.held_queues import HeldQueues
from ..rebalancing.process_queue import ProcessQueue
from ..rebalancing.subscriptions import subscription_of
from ..settings.consumer_settings import LitePullConsumerSettings
from ..tasks import cancelled
from ..values.message import MessageExt
from ..values.results import PullStatus
from .pull_api import PullApi, PullOrder
from .queue_loop import QueueLoop, delay_if_again

_log = logging.getLogger(__name__)

NO_POSITION: Final = -1

QueuesChanged = Callable[[str, set[MessageQueue], set[MessageQueue]], None]
"""Topic, all its queues, those of this member."""


class Assigned(msgspec.Struct, eq=False):
    """One queue that is read. Offsets are -1 while unknown."""

    queue: MessageQueue
    process_queue: ProcessQueue
    pull_offset: int = NO_POSITION
    consume_offset: int = NO_POSITION
    """After what was polled."""
    handled_offset: int = NO_POSITION
    """After what was polled before the last poll: its user has handled that."""
    paused: bool = False
    task: asyncio.Task[None] | None = None


class LiteQueues(HeldQueues):
    """`ready` holds batches in the order they arrived."""

    def __init__(
        self, context: ConsumerContext[LitePullConsumerSettings], on_queues_changed: QueuesChanged
    ) -> None:
        super().__init__(context, consume_passively=False)
        self.settings = context.settings
        self.pull_api = PullApi(
            context.instance, context.group, context.hooks, unit_mode=context.settings.unit_mode
        )
        self.assigned: dict[MessageQueue, Assigned] = {}
        self.ready: deque[tuple[Assigned, list[MessageExt]]] = deque()
        self.arrived = asyncio.Event()
        self._is_by_hand = False
        self._polled_last: Assigned | None = None
        self._on_queues_changed = on_queues_changed

    def held(self) -> list[MessageQueue]:
        return list(self.assigned)

    def assignment(self) -> Iterable[MessageQueue]:
        return self.assigned

    def positions(self) -> dict[MessageQueue, int]:
        """Behind what was polled, or where this member began to read."""
        found = {}
        for queue, assigned in sorted(self.assigned.items()):
            polled = assigned.consume_offset
            position = polled if polled >= 0 else assigned.process_queue.start_offset
            if position >= 0:
                found[queue] = position
        return found

    def assign(self, queues: Iterable[MessageQueue]) -> None:
        """Read exactly these."""
        self._is_by_hand = True
        wanted = set(queues)
        for queue in [queue for queue in self.assigned if queue not in wanted]:
            self.forget(queue)
        for queue in sorted(wanted - self.assigned.keys()):
            process_queue = ProcessQueue(steady_ms)
            process_queue.start_offset = NO_POSITION
            assigned = self.assigned[queue] = Assigned(queue, process_queue)
            self.start_pulling(assigned)
        self.share_known.set()

    async def stop(self) -> None:
        """End every pull loop; the queues stay assigned."""
        self._stopped = True
        self.arrived.set()
        await cancelled([one.task for one in self.assigned.values() if one.task is not None])

    def take_ready(self) -> list[MessageExt] | None:
        """The next batch of a queue that is still assigned; its offset is what a commit would store. The batch before
        it counts as handled."""
        self.note_handled()
        while self.ready:
            assigned, messages = self.ready.popleft()
            if assigned.process_queue.dropped:
                continue
            offset = assigned.process_queue.remove(messages)
            if offset >= 0:
                assigned.consume_offset = offset
            self._polled_last = assigned
            return messages
        return None

    def note_handled(self, offset: int | None = None) -> None:
        """The user has handled the last batch, or what is before an offset of its queue."""
        assigned = self._polled_last
        if assigned is not None:
            assigned.handled_offset = assigned.consume_offset if offset is None else offset

    def arrive(self, assigned: Assigned, messages: list[MessageExt]) -> None:
        """Messages were pulled: they wait for `take_ready`."""
        assigned.process_queue.put(messages)
        self.ready.append((assigned, messages))
        self.arrived.set()

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Forget what was pulled and read on from an offset."""
        assigned = self.assigned.get(queue)
        if assigned is None:
            return
        assigned.process_queue.clear()
        self.ready = deque(item for item in self.ready if item[0] is not assigned)
        assigned.pull_offset = assigned.consume_offset = assigned.handled_offset = offset
        self.offsets.update(queue, offset)
        self.start_pulling(assigned)

    def start_pulling(self, assigned: Assigned) -> None:
        if assigned.task is not None:
            assigned.task.cancel()
            assigned.task = None
        if not self._stopped:
            work = _LitePullLoop(self, assigned).run()
            assigned.task = self._instance.spawn(work, f"pull {assigned.queue}")

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

    def remember_handled(self) -> None:
        """The same for what was handled; a later offset that was committed by hand stays."""
        for queue, assigned in self.assigned.items():
            if assigned.handled_offset >= 0 and not assigned.process_queue.dropped:
                self.offsets.update(queue, assigned.handled_offset, increase_only=True)

    # -- what the instance asks

    def subscribed_topics(self) -> list[str]:
        return list({*self._subscriptions, *(queue.topic for queue in self.assigned)})

    async def rebalance(self) -> bool:
        """One round; none if the queues were assigned by hand."""
        return self._is_by_hand or self._stopped or await super().rebalance()

    async def running_info(self) -> ConsumerRunningInfo:
        return ConsumerRunningInfo(
            properties={"PROP_CONSUME_TYPE": "CONSUME_ACTIVELY", "PROP_CLIENT_VERSION": "V5_5_0"},
            subscription_set=[*self._subscriptions.values()],
            mq_table={
                queue: assigned.process_queue.info(max(self.offsets.read(queue), 0))
                for queue, assigned in self.assigned.items()
            },
        )

    # -- what a round asks for

    async def stored_offset(self, queue: MessageQueue) -> int:
        offset = self.offsets.read(queue)
        return offset if offset >= 0 else await self.offsets.in_store(queue)

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
        self._on_queues_changed(topic, known, assigned)


class _LitePullLoop(QueueLoop):
    verb = "pull"

    def __init__(self, queues: LiteQueues, assigned: Assigned) -> None:
        super().__init__(queues.context, assigned.queue, assigned.process_queue)
        self._queues = queues
        self._assigned = assigned

    async def delay_before(self) -> int:
        settings, assigned = self._queues.settings, self._assigned
        if assigned.paused:
            return SUSPENDED_DELAY_MS
        if len(self._queues.ready) * settings.pull_batch_size > settings.pull_threshold_for_all:
            return FLOW_CONTROL_DELAY_MS
        if is_over_limit(
            assigned.process_queue,
            count=settings.pull_threshold_for_queue,
            size_mib=settings.pull_threshold_size_for_queue,
            span=settings.consume_max_span,
        ):
            return FLOW_CONTROL_DELAY_MS
        if assigned.pull_offset < 0:
            offset = await self._queues.first_position(self.queue)
            assigned.pull_offset = assigned.process_queue.start_offset = offset
        return 0

    async def ask(self) -> int | None:
        queues, queue, assigned, settings = self._queues, self.queue, self._assigned, self._queues.settings
        offset = assigned.pull_offset
        subscription = self.context.subscriptions.get(queue.topic) or subscription_of(queue.topic, "*")
        result = await queues.pull_api.pull(
            queue,
            PullOrder(
                offset=offset,
                subscription=subscription,
                sys_flag=PULL_SUSPEND | PULL_SUBSCRIPTION | PULL_LITE_PULL_MESSAGE,
                max_count=settings.pull_batch_size,
                suspend_ms=settings.broker_suspend_max_time_millis,
                timeout_ms=settings.consumer_timeout_millis_when_suspend,
            ),
        )
        if assigned.process_queue.dropped:
            return None
        if result.status is PullStatus.OFFSET_ILLEGAL:
            _log.warning(
                "the offset of %s in %s is illegal, going on at %d", queues.group, queue, result.next_offset
            )
        if result.messages:
            queues.arrive(assigned, result.messages)
        assigned.pull_offset = result.next_offset
        return delay_if_again(result, offset)
