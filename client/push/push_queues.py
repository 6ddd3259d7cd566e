"""The queues a push consumer holds: locks, pull loops, thresholds, and how each queue is given up.

Rounds decide and call here (`rebalancing/held_queues.py`); with `client_rebalance=False` (5.x) the broker decides which
queues are pulled, and which popped (`pop_queues.py`). There is exactly one pull under way for each queue, held at the
broker until there is something. A loop ends when its queue is dropped, or when the broker refuses its offset; the
offset is then corrected in the background. What each answer does is `pulling/queue_loop.py`, when to hold back is
`rebalancing/flow_control.py`. Mirrors `RebalancePushImpl`, `RebalanceImpl.getRebalanceResultFromBroker` and the pulling
half of `DefaultMQPushConsumerImpl`.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from pocketmq.protocol.bodies.client import MessageQueueAssignment, QueryAssignmentRequestBody
from pocketmq.protocol.bodies.client_state import ConsumeMessageDirectlyResult, ConsumerRunningInfo
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.flags import PULL_COMMIT_OFFSET, PULL_SUBSCRIPTION, PULL_SUSPEND
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import is_retry_topic, pop_retry_topic
from pocketmq.protocol.requests.pop import QueryAssignment

from ..clock import steady_ms, wall_ms
from ..delivery.concurrent_delivery import ConcurrentDelivery
from ..delivery.listeners import ListenerInvoker
from ..delivery.ordered_delivery import OrderedDelivery
from ..delivery.send_back import SendBack
from ..errors import ClientError
from ..offsets.broker_store import RemoteBrokerOffsetStore
from ..pulling.pull_api import PullApi, PullOrder
from ..pulling.queue_loop import QueueLoop, delay_if_again
from ..rebalancing.consumer_context import ConsumerContext
from ..rebalancing.flow_control import (
    BROKER_SUSPEND_MAX_MS,
    FLOW_CONTROL_DELAY_MS,
    PULL_TIMEOUT_MS,
    SUSPENDED_DELAY_MS,
    PullControl,
    is_over_limit,
)
from ..rebalancing.held_queues import HeldQueues
from ..rebalancing.process_queue import ProcessQueue
from ..rebalancing.queue_locks import QueueLocks
from ..settings.consumer_settings import PushConsumerSettings
from ..tasks import cancelled
from ..values.listener_returns import ConsumeConcurrentlyContext, ConsumeOrderlyContext, direct_result
from ..values.message import MessageExt
from ..values.results import PullStatus
from .pop_queues import PopQueues
from .running_info import push_running_info

_log = logging.getLogger(__name__)

ASSIGNMENT_TIMEOUT_SECONDS: Final = 3.0
RELEASE_WAIT_SECONDS: Final = 0.5
RESET_WAIT_SECONDS: Final = 10.0
"""A reset lets listeners finish for this long before it moves the offsets."""

QueuesChanged = Callable[[list[MessageQueue]], None]


class PushQueues(HeldQueues):
    """`locks` is None for a consumer that needs none."""

    def __init__(
        self,
        context: ConsumerContext[PushConsumerSettings],
        invoker: ListenerInvoker,
        control: PullControl,
        *,
        orderly: bool,
        on_assigned: QueuesChanged | None,
        on_revoked: QueuesChanged | None,
        on_reconnect: Callable[[str], None] | None,
    ) -> None:
        settings = context.settings
        super().__init__(context, consume_passively=True)
        self._settings, self._invoker, self.control = settings, invoker, control
        needs_locks = orderly and context.is_clustering
        self.locks = QueueLocks(context, self.table) if needs_locks else None
        self.pops: PopQueues | None = None
        """Set if the broker assigns the queues; ordered and broadcasting consumers always share them by themselves."""
        send_back = SendBack(context)
        self._ordered: OrderedDelivery | None = None
        self.delivery: ConcurrentDelivery | OrderedDelivery
        if orderly:
            self.delivery = self._ordered = OrderedDelivery(context, invoker, send_back, self.locks)
        else:
            self.delivery = ConcurrentDelivery(context, invoker, send_back)
            if context.is_clustering and not settings.client_rebalance:
                self.pops = PopQueues(context, self.control, self.delivery)
        self.pull_api = PullApi(context.instance, context.group, context.hooks, unit_mode=settings.unit_mode)
        self.is_orderly, self._start_ms = orderly, wall_ms()
        self._on_assigned, self._on_revoked = on_assigned, on_revoked
        self._on_reconnect = on_reconnect
        self._pulls: dict[ProcessQueue, asyncio.Task[None]] = {}
        self._shares: dict[str, set[MessageQueue]] = {}

    def assignment(self) -> list[MessageQueue]:
        """The queues that are pulled or popped now."""
        return [*self.table.live(), *(() if self.pops is None else self.pops.table)]

    # -- rounds

    async def rebalance(self) -> bool:
        """One round; a paused consumer skips it."""
        if self.control.is_paused or self._stopped:
            return self._stopped
        has_share = await super().rebalance()
        if self.pops is not None:
            self.pops.keep_only([*self._subscriptions])
        return has_share

    async def round_of(self, topic: str) -> bool:
        """The broker may assign the queues, some to pull and some to pop (official updateMessageQueueAssignment)."""
        if self.pops is None:
            return await super().round_of(topic)
        answer = await self._assigned_by_broker(topic)
        if answer is None:
            return False
        pulled, popped = answer
        self._read_pop_retries(topic, pulled, popped)
        changed = await self.give_up(topic, pulled)
        changed |= self.pops.exchange(topic, popped)
        await self.add(topic, pulled, pulled | popped, pulled | popped, changed=changed)
        return self.table.is_balanced(topic, pulled)

    async def _assigned_by_broker(self, topic: str) -> tuple[set[MessageQueue], set[MessageQueue]] | None:
        """The queues to pull and those to pop; None if the broker cannot answer: then everything stays as it is.

        A queue to pop mostly has the id -1, which is any queue of the broker. The strategy is one the broker knows.
        """
        instance, settings = self._instance, self._settings
        body = QueryAssignmentRequestBody(
            topic=topic,
            consumer_group=self.group,
            client_id=instance.client_id,
            strategy_name=settings.allocate_message_queue_strategy.name,
            message_model=settings.message_model.value,
        )
        try:
            address = await instance.routes.find_any_broker(topic)
            reply = await instance.connections.call(
                address, QueryAssignment(), body, timeout_seconds=ASSIGNMENT_TIMEOUT_SECONDS
            )
            assigned = reply.message_queue_assignments
        except (ClientError, ProtocolError) as error:
            # The retry topic is created with the group's first heartbeat: it is asked for again in a second.
            level = logging.DEBUG if is_retry_topic(topic) else logging.WARNING
            _log.log(level, "assignment of %s in %s: %s", self.group, topic, error)
            return None
        return None if assigned is None else split_assignments(assigned)

    def _read_pop_retries(self, topic: str, pulled: set[MessageQueue], popped: set[MessageQueue]) -> None:
        """A topic that went from pop to pull is read together with its pop retry topic, where pop left messages; while
        it pops, the broker reads them (5.x)."""
        if is_retry_topic(topic) or bool(pulled) == bool(popped):
            return
        retry = pop_retry_topic(topic, self.group)
        if not pulled:
            self._subscriptions.pop(retry, None)
        elif retry not in self._subscriptions:
            self._subscriptions.subscribe(retry, "*")

    async def stop_pulling(self) -> None:
        """End every pull loop; the queues stay ours."""
        self._stopped = True
        if self.pops is not None:
            await self.pops.stop()
        await cancelled(list(self._pulls.values()))
        self._pulls.clear()

    def drop_all(self) -> None:
        super().drop_all()
        if self.pops is not None:
            self.pops.drop_all()

    async def reset_offsets(self, topic: str, offsets: dict[MessageQueue, int]) -> None:
        """Continue from other offsets (220): drop the queues, let listeners finish, move the offsets, add the queues
        again."""
        self.control.resets += 1
        try:
            moved = []
            for queue, offset in offsets.items():
                process_queue = self.drop(queue) if queue.topic == topic else None
                if process_queue is not None:
                    process_queue.clear()
                    moved.append((queue, process_queue, offset))
            if self._ordered is None:
                await asyncio.sleep(RESET_WAIT_SECONDS)
            for queue, process_queue, offset in moved:
                if self._ordered is not None:
                    await self._wait_for_listener(self._ordered, process_queue, RESET_WAIT_SECONDS)
                self.offsets.update(queue, offset)
                await self.release(queue, process_queue)
                self.table.discard(queue, process_queue)
        finally:
            self.control.resets -= 1
            self._instance.rebalance_now()

    # -- what else the instance asks

    async def running_info(self) -> ConsumerRunningInfo:
        pops = {} if self.pops is None else self.pops.table
        return push_running_info(
            self.context, self.table, pops, orderly=self.is_orderly, start_ms=self._start_ms
        )

    async def consume_directly(self, message: MessageExt) -> ConsumeMessageDirectlyResult | None:
        began_ms = steady_ms()
        context = (ConsumeOrderlyContext if self.is_orderly else ConsumeConcurrentlyContext)(message.queue)
        returned, error = await self._invoker.call_once(message, context)
        return ConsumeMessageDirectlyResult(
            order=self.is_orderly,
            auto_commit=context.auto_commit if isinstance(context, ConsumeOrderlyContext) else True,
            consume_result=direct_result(returned, raised=error is not None).value,
            remark=None if error is None else f"{type(error).__name__}: {error}",
            spent_time_mills=steady_ms() - began_ms,
        )

    def reconnected(self, address: str) -> None:
        if self._on_reconnect is not None:
            try:
                self._on_reconnect(address)
            except Exception:
                _log.exception("the on_reconnect of %s failed", self.group)

    # -- what a round asks for

    async def lock(self, queue: MessageQueue) -> bool:
        return True if self.locks is None else await self.locks.lock(queue)

    async def stored_offset(self, queue: MessageQueue) -> int:
        return await self.offsets.in_store(queue)

    def end(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        pull = self._pulls.pop(process_queue, None)
        if pull is not None:
            pull.cancel()
        self.pull_api.forget(queue)

    async def release(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """Persist and forget; an ordered queue only once no listener works on it (official
        removeUnnecessaryMessageQueue)."""
        await self.offsets.persist(queue)
        if self.locks is None:
            self.offsets.remove(queue)
            return True
        assert self._ordered is not None
        may_be_released = process_queue.may_be_forced or await self._wait_for_listener(
            self._ordered, process_queue, RELEASE_WAIT_SECONDS
        )
        if not may_be_released:
            process_queue.try_unlock_times += 1
            return False
        await self.offsets.persist(queue)
        self.offsets.remove(queue)
        process_queue.note_locked(False)
        await self.locks.unlock(queue)
        return True

    def begin(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int) -> None:
        if not self._stopped:
            loop = PullLoop(self, queue, process_queue, offset)
            self._pulls[process_queue] = self._instance.spawn(loop.run(), f"pull {queue}")

    async def queues_changed(self, topic: str, known: set[MessageQueue], assigned: set[MessageQueue]) -> None:
        """Divide the thresholds, send the brokers a new subscription version, then call the user's callbacks."""
        before = self._shares.get(topic, set())
        self._shares[topic] = set(assigned)
        if self._stopped or (not known and not before):
            return
        self._subscriptions.renew(topic)
        self.control.share_thresholds(len(self.table))
        self._instance.heartbeats.forget_fingerprints()
        await self._instance.heartbeats.send()
        if not is_retry_topic(topic):
            _call(self._on_revoked, before - assigned)
            _call(self._on_assigned, assigned - before)

    async def _wait_for_listener(
        self, ordered: OrderedDelivery, process_queue: ProcessQueue, timeout_seconds: float
    ) -> bool:
        """Whether the listener ended with the queue in time."""
        try:
            async with asyncio.timeout(timeout_seconds), ordered.consume_lock(process_queue):
                return True
        except TimeoutError:
            return False

    # -- an illegal offset

    async def correct_offset(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int) -> None:
        """The broker refused the offset: continue at the one it names, with a fresh process queue
        (`pulling/queue_loop.py`)."""
        _log.warning("the offset of %s in %s is illegal, going on at %d", self.group, queue, offset)
        process_queue.dropped = True
        self._pulls.pop(process_queue, None)
        self.offsets.update_and_freeze(queue, offset)
        await self.offsets.persist(queue)
        while not await self.remove(queue, process_queue):
            pass  # it waits for the listener; once the lock is old, it does not any more
        self._instance.rebalance_now()


def _call(callback: QueuesChanged | None, queues: set[MessageQueue]) -> None:
    if callback is None or not queues:
        return
    try:
        callback(sorted(queues))
    except Exception:
        _log.exception("a callback for changed queues failed")


def split_assignments(
    assignments: Sequence[MessageQueueAssignment],
) -> tuple[set[MessageQueue], set[MessageQueue]]:
    """Queues to pull and queues to pop of the answer to QUERY_ASSIGNMENT."""
    pull: set[MessageQueue] = set()
    pop: set[MessageQueue] = set()
    for assignment in assignments:
        if assignment.message_queue is not None:
            (pop if assignment.mode == "POP" else pull).add(assignment.message_queue)
    return pull, pop


class PullLoop(QueueLoop):
    verb = "pull"
    context: ConsumerContext[PushConsumerSettings]

    def __init__(
        self, queues: PushQueues, queue: MessageQueue, process_queue: ProcessQueue, offset: int
    ) -> None:
        super().__init__(queues.context, queue, process_queue)
        self._queues = queues
        self._process_queue = process_queue
        self._offset = offset
        self._previously_locked = queues.locks is None

    async def delay_before(self) -> int:
        queues, process_queue, settings = self._queues, self._process_queue, self.context.settings
        if queues.control.is_paused:
            return SUSPENDED_DELAY_MS
        if is_over_limit(
            process_queue,
            count=queues.control.max_count,
            size_mib=queues.control.max_size_mib,
            span=None if queues.is_orderly else settings.consume_concurrently_max_span,
        ):
            return FLOW_CONTROL_DELAY_MS
        if self._previously_locked:
            return 0
        if not process_queue.locked:
            return settings.pull_time_delay_mills_when_exception
        # The last owner may have committed between our reading of the offset and our lock.
        self._offset = await queues.first_position(self.queue)
        self._previously_locked = True
        return 0

    async def ask(self) -> int | None:
        context, queue, process_queue = self.context, self.queue, self._process_queue
        settings, offsets = context.settings, context.offsets
        subscription = context.subscriptions.get(queue.topic)
        if subscription is None:
            return settings.pull_time_delay_mills_when_exception
        memory = offsets.read(queue) if context.is_clustering else 0
        sends_expression = settings.post_subscription_when_pull and not subscription.class_filter_mode
        sys_flag = PULL_SUSPEND | (PULL_SUBSCRIPTION if sends_expression else 0)
        # the offsets of a user's own store travel with every pull, as in Java
        if memory > 0 and (
            not isinstance(offsets, RemoteBrokerOffsetStore) or offsets.may_travel_with_pull(queue)
        ):
            sys_flag |= PULL_COMMIT_OFFSET
        loop = asyncio.get_running_loop()
        began = loop.time()
        result = await self._queues.pull_api.pull(
            queue,
            PullOrder(
                offset=self._offset,
                subscription=subscription,
                sends_expression=sends_expression,
                sys_flag=sys_flag,
                max_count=settings.pull_batch_size,
                max_bytes=settings.pull_batch_size_in_bytes,
                commit_offset=memory,
                suspend_ms=BROKER_SUSPEND_MAX_MS,
                timeout_ms=PULL_TIMEOUT_MS,
                sub_version=subscription.sub_version,
            ),
        )
        if process_queue.dropped:
            return None
        if result.messages:
            context.statistics.pulled(queue.topic, len(result.messages), (loop.time() - began) * 1000)
            self._queues.delivery.deliver(result, queue, process_queue)
        asked, self._offset = self._offset, result.next_offset
        if result.status is PullStatus.OFFSET_ILLEGAL:
            correction = self._queues.correct_offset(queue, process_queue, result.next_offset)
            context.instance.spawn(correction, f"correction of {queue}")
            return None
        if result.status is PullStatus.FOUND:
            return settings.pull_interval if result.messages else 0
        if not process_queue.count:
            offsets.update(queue, result.next_offset, increase_only=True)
        return delay_if_again(result, asked)
