"""The queues a push consumer holds: locks, pull loops, thresholds, and how each queue is given up.

The rebalancer decides and calls here; the pull loops ask here what they may do. What is pulled goes to `deliver`.
Mirrors `RebalancePushImpl` and the pulling half of `DefaultMQPushConsumerImpl`.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec
from pocketmq.protocol.bodies.client import SubscriptionData, build_subscription
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import is_retry_topic

from ..clock import steady_ms
from ..delivery.ordered_delivery import OrderedDelivery
from ..hooks.hooks import Hooks
from ..instance.instance import ClientInstance
from ..offsets.broker_store import RemoteBrokerOffsetStore
from ..offsets.offset_store import OffsetStore, read_offset
from ..rebalancing.broker_assignments import BrokerAssignments
from ..rebalancing.flow_control import share_of_topic
from ..rebalancing.held_queues import HeldQueues
from ..rebalancing.plan import is_client_rebalance, needs_lock, pop_retry_subscription
from ..rebalancing.process_queue import ProcessQueue
from ..rebalancing.queue_locks import QueueLocks
from ..settings.consumer_settings import PushConsumerSettings
from ..values.message import MessageExt
from .pop_queues import DeliverPopped, PopQueues
from .pull_loop import PullLoop

if TYPE_CHECKING:
    from ..delivery.statistics import ConsumerStatistics

_log = logging.getLogger(__name__)

RELEASE_WAIT_SECONDS: Final = 0.5
RESET_WAIT_SECONDS: Final = 10.0
"""A reset lets listeners finish for this long before it moves the offsets."""

Deliver = Callable[[list[MessageExt], MessageQueue, ProcessQueue, bool], None]
QueuesChanged = Callable[[list[MessageQueue]], None]


class PushQueues(HeldQueues):
    """Of one started consumer. `ordered` is its ordered delivery, None for a concurrent one."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        settings: PushConsumerSettings,
        subscriptions: dict[str, SubscriptionData],
        offsets: OffsetStore,
        statistics: "ConsumerStatistics",
        deliver: Deliver,
        *,
        hooks: Hooks,
        orderly: bool,
        deliver_popped: DeliverPopped,
        on_assigned: QueuesChanged | None,
        on_revoked: QueuesChanged | None,
    ) -> None:
        self.settings = settings
        self.statistics = statistics
        self.is_paused = False
        self.is_orderly = orderly
        self.needs_locks = needs_lock(orderly=orderly, message_model=settings.message_model)
        self.max_count = settings.pull_threshold_for_queue
        self.max_size_mib = settings.pull_threshold_size_for_queue
        self.ordered: OrderedDelivery | None = None
        self.assigned = asyncio.Event()
        """Set once a round left every topic but the retry topic as it should be."""
        assignments = None
        self.pops: PopQueues | None = None
        if not is_client_rebalance(
            client_rebalance=settings.client_rebalance, orderly=orderly, message_model=settings.message_model
        ):
            name = settings.allocate_message_queue_strategy.name
            assignments = BrokerAssignments(instance, group, name, settings.message_model)
            self.pops = PopQueues(instance, group, settings, statistics, self, hooks, deliver_popped)
        super().__init__(
            instance,
            group,
            settings,
            subscriptions,
            offsets,
            hooks=hooks,
            consume_passively=True,
            assignments=assignments,
            pops=self.pops,
        )
        self._deliver = deliver
        self._on_assigned, self._on_revoked = on_assigned, on_revoked
        self.locks = QueueLocks(instance, group, self.table)
        self._pulls: dict[ProcessQueue, asyncio.Task[None]] = {}
        self._shares: dict[str, set[MessageQueue]] = {}

    async def lag(self) -> dict[MessageQueue, int]:
        """Messages not consumed yet of each queue, without the retry topic's."""
        behind = {}
        for queue, state in sorted(self.table.items(), key=lambda item: item[0]):
            if not state.dropped and not is_retry_topic(queue.topic):
                offset = await read_offset(self.offsets, queue)
                reached = offset if offset >= 0 else state.began_at
                behind[queue] = await self.pull_api.max_offset(queue) - reached
        return behind

    # -- rounds

    async def rebalance(self) -> bool:
        """One round; a paused consumer skips it."""
        if self.is_paused or self._stopped:
            return self._stopped
        found_all = await self.find_topics_to_come()
        balanced = await self._rebalancer.round(list(self._subscriptions))
        if all(is_retry_topic(topic) for topic in self._rebalancer.unbalanced):
            self.assigned.set()
        return balanced and found_all

    def rebalance_without_brokers(self) -> None:
        """No topic exists yet, so no broker is known and no heartbeat was sent. A consumer without topics has all it
        can have; any other rebalances all the same, because the next round then follows within a second."""
        if all(is_retry_topic(topic) for topic in self._subscriptions):
            self.assigned.set()
        else:
            self._instance.rebalance_now()

    async def stop_pulling(self) -> None:
        """End every pull loop; the queues stay ours."""
        self._stopped = True
        if self.pops is not None:
            await self.pops.stop()
        pulls = list(self._pulls.values())
        for pull in pulls:
            pull.cancel()
        await asyncio.gather(*pulls, return_exceptions=True)
        self._pulls.clear()

    def drop_all(self) -> None:
        """Give up everything at once: the consumer has left the group."""
        super().drop_all()
        if self.pops is not None:
            self.pops.drop_all()

    async def reset(self, topic: str, offsets: dict[MessageQueue, int]) -> None:
        """Go on elsewhere (220): drop the queues, let listeners finish, move the offsets, take the queues anew."""
        self.is_paused = True
        try:
            moved = []
            for queue, offset in offsets.items():
                state = self._rebalancer.drop(queue) if queue.topic == topic else None
                if state is not None:
                    state.clear()
                    moved.append((queue, state, offset))
            if self.ordered is None:
                await asyncio.sleep(RESET_WAIT_SECONDS)
            for queue, state, offset in moved:
                if self.ordered is not None:
                    await self._wait_for_listener(state, RESET_WAIT_SECONDS)
                self.offsets.update(queue, offset)
                await self.release(queue, state)
                if self.table.get(queue) is state:
                    del self.table[queue]
        finally:
            self.is_paused = False
            self._instance.rebalance_now()

    # -- what the rebalancer asks

    async def lock(self, queue: MessageQueue) -> bool:
        return await self.locks.lock(queue) if self.needs_locks else True

    async def stored_offset(self, queue: MessageQueue) -> int:
        return await self.offsets.in_store(queue)

    def mode_chosen(self, topic: str, pulled: set[MessageQueue], popped: set[MessageQueue]) -> None:
        """A topic that is pulled again is read together with what pop left for retry (5.x)."""
        change = pop_retry_subscription(topic, self.group, pulled, popped)
        if change is None:
            return
        retry, subscribes = change
        if not subscribes:
            self._subscriptions.pop(retry, None)
        elif retry not in self._subscriptions:
            self._subscriptions[retry] = build_subscription(retry, "*", "TAG", sub_version=steady_ms())

    def end(self, queue: MessageQueue, state: ProcessQueue) -> None:
        pull = self._pulls.pop(state, None)
        if pull is not None:
            pull.cancel()
        self.pull_api.forget(queue)

    async def release(self, queue: MessageQueue, state: ProcessQueue) -> bool:
        """removeUnnecessaryMessageQueue: persist and forget; ordered, only when no listener has the queue."""
        await self.offsets.persist(queue)
        if not self.needs_locks:
            self.offsets.remove(queue)
            return True
        if not state.may_be_forced and not await self._wait_for_listener(state, RELEASE_WAIT_SECONDS):
            state.try_unlock_times += 1
            return False
        await self.offsets.persist(queue)
        self.offsets.remove(queue)
        state.note_locked(False)
        await self.locks.unlock(queue)
        return True

    def begin(self, queue: MessageQueue, state: ProcessQueue, offset: int) -> None:
        if not self._stopped:
            loop = PullLoop(self, queue, state, offset)
            self._pulls[state] = self._instance.spawn(loop.run(), f"pull {queue}")

    async def queues_changed(self, topic: str, known: set[MessageQueue], mine: set[MessageQueue]) -> None:
        """Share the thresholds out, tell the brokers (a new subscription version), then the user."""
        before = self._shares.get(topic, set())
        self._shares[topic] = set(mine)
        if self._stopped or (not known and not before):
            return
        subscription = self._subscriptions.get(topic)
        if subscription is not None:
            self._subscriptions[topic] = msgspec.structs.replace(subscription, sub_version=steady_ms())
        settings, count = self.settings, len(self.table)
        self.max_count = share_of_topic(settings.pull_threshold_for_topic, count, self.max_count)
        self.max_size_mib = share_of_topic(settings.pull_threshold_size_for_topic, count, self.max_size_mib)
        self._instance.heartbeats.forget_fingerprints()
        await self._instance.heartbeats.send()
        if not is_retry_topic(topic):
            _tell(self._on_revoked, before - mine)
            _tell(self._on_assigned, mine - before)

    async def _wait_for_listener(self, state: ProcessQueue, timeout_seconds: float) -> bool:
        """Whether the listener let go of the queue in time."""
        assert self.ordered is not None
        try:
            async with asyncio.timeout(timeout_seconds), self.ordered.consume_lock(state):
                return True
        except TimeoutError:
            return False

    # -- what pull loops ask

    def subscription(self, topic: str) -> SubscriptionData | None:
        return self._subscriptions.get(topic)

    def submit(
        self, messages: list[MessageExt], queue: MessageQueue, state: ProcessQueue, *, is_new: bool
    ) -> None:
        self._deliver(messages, queue, state, is_new)

    def may_carry_offset(self, queue: MessageQueue) -> bool:
        """A store of the user's own is not asked: as in Java it learns of offsets as brokers do."""
        return not isinstance(self.offsets, RemoteBrokerOffsetStore) or self.offsets.may_ride(queue)

    def correct_offset(self, queue: MessageQueue, state: ProcessQueue, offset: int) -> None:
        self._instance.spawn(self._correct(queue, state, offset), f"correction of {queue}")

    async def _correct(self, queue: MessageQueue, state: ProcessQueue, offset: int) -> None:
        """The broker refused the offset: go on at the one it names, from a fresh queue (offset_correction.py)."""
        _log.warning("the offset of %s in %s is illegal, going on at %d", self.group, queue, offset)
        state.dropped = True
        self._pulls.pop(state, None)
        self.offsets.update_and_freeze(queue, offset)
        await self.offsets.persist(queue)
        if self.table.get(queue) is state:
            del self.table[queue]
        await self.release(queue, state)
        self._instance.rebalance_now()


def _tell(callback: QueuesChanged | None, queues: set[MessageQueue]) -> None:
    if callback is None or not queues:
        return
    try:
        callback(sorted(queues))
    except Exception:
        _log.exception("a callback for changed queues failed")
