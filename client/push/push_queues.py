"""The queues a push consumer holds: locks, pull loops, thresholds, and how each queue is given up.

Rounds decide and call here (`rebalancing/held_queues.py`). Mirrors `RebalancePushImpl` and the pulling half of
`DefaultMQPushConsumerImpl`.
"""

import asyncio
import functools
import logging
from collections.abc import Callable, Collection
from typing import Final

from pocketmq.protocol.bodies.client_state import ConsumeMessageDirectlyResult, ConsumerRunningInfo
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import is_retry_topic

from ..clock import steady_ms, wall_ms
from ..delivery.concurrent_delivery import ConcurrentDelivery
from ..delivery.invocation import ListenerInvoker
from ..delivery.ordered_delivery import OrderedDelivery
from ..delivery.send_back import SendBack
from ..pulling.pull_api import PullApi
from ..rebalancing.broker_assignments import BrokerAssignments
from ..rebalancing.consumer_context import ConsumerContext
from ..rebalancing.flow_control import PullControl
from ..rebalancing.held_queues import HeldQueues
from ..rebalancing.plan import is_client_rebalance, needs_lock, pop_retry_subscription
from ..rebalancing.process_queue import ProcessQueue
from ..rebalancing.queue_locks import QueueLocks
from ..settings.consumer_settings import PushConsumerSettings
from ..values.listener_returns import ConsumeOrderlyContext, direct_result
from ..values.message import MessageExt
from .pop_queues import PopQueues
from .pull_loop import PullLoop
from .running_info import push_running_info

_log = logging.getLogger(__name__)

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
        *,
        orderly: bool,
        is_suspended: bool,
        on_assigned: QueuesChanged | None,
        on_revoked: QueuesChanged | None,
        on_reconnect: Callable[[str], None] | None,
    ) -> None:
        settings = context.settings
        by_broker = not is_client_rebalance(
            client_rebalance=settings.client_rebalance,
            orderly=orderly,
            message_model=settings.message_model,
        )
        super().__init__(
            context, consume_passively=True, assignments=BrokerAssignments(context) if by_broker else None
        )
        self.control = PullControl(settings, is_suspended=is_suspended)
        self.locks: QueueLocks | None = None
        if needs_lock(orderly=orderly, message_model=settings.message_model):
            self.locks = QueueLocks(context, self.table)
        self.pops: PopQueues | None = None
        send_back = SendBack(context)
        self._ordered: OrderedDelivery | None = None
        self.delivery: ConcurrentDelivery | OrderedDelivery
        if orderly:
            self.delivery = self._ordered = OrderedDelivery(context, invoker, send_back, self.locks)
        else:
            self.delivery = ConcurrentDelivery(context, invoker, send_back)
            if by_broker:
                self.pops = PopQueues(context, self.control, self.delivery)
        self.pull_api = PullApi(context.instance, context.group, context.hooks, unit_mode=settings.unit_mode)
        self._orderly, self._start_ms = orderly, wall_ms()
        self._on_assigned, self._on_revoked = on_assigned, on_revoked
        self._on_reconnect = on_reconnect
        self._pulls: dict[ProcessQueue, asyncio.Task[None]] = {}
        self._shares: dict[str, set[MessageQueue]] = {}
        self._pull_loop = functools.partial(
            PullLoop,
            context,
            self.control,
            self.pull_api,
            self.delivery,
            self.first_position,
            self.correct_offset,
        )

    def assignment(self) -> list[MessageQueue]:
        """The queues that are pulled or popped now."""
        return [*self.table.live(), *(() if self.pops is None else self.pops.table)]

    # -- rounds

    async def rebalance(self) -> bool:
        """One round; a paused consumer skips it."""
        if self.control.is_paused or self._stopped:
            return self._stopped
        return await super().rebalance()

    def rebalance_without_brokers(self, *, answered: bool) -> None:
        """Without name servers the next round comes in its time."""
        if answered:
            super().rebalance_without_brokers(answered=answered)

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
            self.context, self.table, pops, orderly=self._orderly, start_ms=self._start_ms
        )

    async def consume_directly(self, message: MessageExt) -> ConsumeMessageDirectlyResult | None:
        began_ms = steady_ms()
        returned, error, context = await self.delivery.call_once(message)
        return ConsumeMessageDirectlyResult(
            order=self._orderly,
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

    def mode_chosen(self, topic: str, pulled: set[MessageQueue], popped: set[MessageQueue]) -> None:
        """A topic that is pulled again is read together with its pop retry topic (5.x)."""
        change = pop_retry_subscription(topic, self.group, pulled, popped)
        if change is None:
            return
        retry, subscribes = change
        if not subscribes:
            self._subscriptions.unsubscribe(retry)
        elif retry not in self._subscriptions:
            self._subscriptions.subscribe(retry, "*")

    def exchange_popped(self, topic: str, popped: set[MessageQueue]) -> bool:
        return self.pops is not None and self.pops.exchange(topic, popped)

    def keep_popped(self, topics: Collection[str]) -> None:
        if self.pops is not None:
            self.pops.keep_only(topics)

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
            loop = self._pull_loop(queue, process_queue, offset)
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

    def correct_offset(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int) -> None:
        self._instance.spawn(self._correct(queue, process_queue, offset), f"correction of {queue}")

    async def _correct(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int) -> None:
        """The broker refused the offset: continue at the one it names, with a fresh process queue
        (`pulling/after_pull.py`)."""
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
