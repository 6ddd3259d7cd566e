"""The rebalance round of one consumer: asks for the facts, lets `plan.py` decide, and adds and removes queues.

The consumer takes part as a `QueueKeeper`, which owns locks, offsets and pull loops. Rounds of one consumer never
overlap: `RebalanceService` runs them one after the other. Differs from 5.x in one point: pulls of new queues begin as
soon as the brokers know the new subscription version, at the latest after the official 500 ms, not always after
500 ms. Mirrors `RebalanceImpl`.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable
from typing import Protocol

from pocketmq.protocol.bodies.client import MessageModel
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.membership import GetConsumerListByGroup

from ..clock import steady_ms
from ..errors import AllocationFailed, ClientError
from ..instance.instance import ClientInstance
from ..settings.allocation import AllocateMessageQueueStrategy
from .broker_assignments import BrokerAssignments
from .flow_control import FIRST_PULL_DELAY_MS
from .plan import (
    RETRY_AFTER_NO_LOCK_MS,
    FirstStep,
    allocate,
    first_step,
    is_balanced,
    plan_additions,
    plan_removals,
    plan_truncation,
)
from .process_queue import ProcessQueue
from .queue_table import QueueTable

_log = logging.getLogger(__name__)


class QueueKeeper(Protocol):
    """The consumer, as a round sees it."""

    async def lock(self, queue: MessageQueue) -> bool:
        """Lock a queue at its broker; True at once for a consumer that needs no locks."""
        ...

    async def first_position(self, queue: MessageQueue) -> int:
        """Where to begin; ClientError if that is not known now."""
        ...

    def forget_offset(self, queue: MessageQueue) -> None:
        """Forget the offset in memory of a queue that is about to be added."""
        ...

    def end(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        """The queue was dropped: stop pulling it."""
        ...

    async def release(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """Persist and unlock a dropped queue; False if its listener still runs."""
        ...

    def begin(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int) -> None:
        """Start pulling a queue that was added."""
        ...

    async def queues_changed(self, topic: str, known: set[MessageQueue], assigned: set[MessageQueue]) -> None:
        """The share of a topic changed: all its queues, and those of this consumer."""
        ...

    def mode_chosen(self, topic: str, pulled: set[MessageQueue], popped: set[MessageQueue]) -> None:
        """The broker says which queues of a topic are pulled, and which popped."""
        ...

    def exchange_popped(self, topic: str, popped: set[MessageQueue]) -> bool:
        """Pop exactly these queues of a topic; True if that changes anything."""
        ...

    def keep_popped(self, topics: Collection[str]) -> None:
        """Stop popping every other topic."""
        ...


class Rebalancer:
    """For one consumer; `table` is what it holds."""

    def __init__(
        self,
        instance: ClientInstance,
        keeper: QueueKeeper,
        group: str,
        table: QueueTable,
        *,
        message_model: MessageModel,
        strategy: AllocateMessageQueueStrategy,
        consume_passively: bool,
        assignments: BrokerAssignments | None = None,
    ) -> None:
        """With `assignments` the broker decides which queues are pulled and which are popped."""
        self._instance = instance
        self._keeper = keeper
        self._group = group
        self._message_model = message_model
        self._strategy = strategy
        self._consume_passively = consume_passively
        self._assignments = assignments
        self._table = table
        self.unbalanced: set[str] = set()
        """Topics whose share was not what it should be after the last round."""

    async def round(self, topics: Iterable[str]) -> bool:
        """Get this consumer's share of these topics, and give up the queues of all others. True if it now has what it
        should have."""
        wanted = list(topics)
        balanced = True
        self.unbalanced.clear()
        for topic in wanted:
            try:
                if not await self._round_of(topic):
                    self.unbalanced.add(topic)
                    balanced = False
            except (ClientError, ProtocolError) as error:
                _log.warning("rebalance of %s in %s: %s", self._group, topic, error)
                self.unbalanced.add(topic)
                balanced = False
        for queue in plan_truncation(wanted, self._table):
            process_queue = self.drop(queue)
            if process_queue is not None:
                self._table.remove(queue, process_queue)
        self._keeper.keep_popped(wanted)
        return balanced

    def drop(self, queue: MessageQueue) -> ProcessQueue | None:
        """Mark a queue dropped and stop its pulls; it stays in the table until it is released."""
        process_queue = self._table.get(queue)
        if process_queue is not None:
            process_queue.dropped = True
            self._keeper.end(queue, process_queue)
        return process_queue

    def drop_all(self) -> None:
        """Drop everything and empty the table (official destroy)."""
        for queue in list(self._table):
            self.drop(queue)
        self._table.clear()

    async def remove(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """Release a dropped queue and remove it, unless its listener still runs."""
        if not await self._keeper.release(queue, process_queue):
            return False
        self._table.remove(queue, process_queue)
        return True

    # -- one topic

    async def _round_of(self, topic: str) -> bool:
        if self._assignments is not None:
            return await self._round_by_broker(topic, self._assignments)
        route = self._instance.routes.route(topic)
        known = None if route is None else route.read_queues()
        step = first_step(topic, self._message_model, known)
        if step is FirstStep.KEEP:
            return True
        if step is FirstStep.ANNOUNCE_NO_QUEUES:
            await self._keeper.queues_changed(topic, set(), set())
            return True
        assert known is not None
        if step is FirstStep.TAKE_ALL:
            target = set(known)
        else:
            members = await self._members(topic)
            if not members:
                return False
            try:
                target = allocate(self._strategy, self._group, self._instance.client_id, known, members)
            except AllocationFailed as error:
                _log.error(
                    "allocation of %s for %s with %s: %s", topic, self._group, self._strategy.name, error
                )
                return False
        added, changed = await self._exchange(topic, target)
        if changed:
            await self._announce_change(topic, set(known), target)
        for queue, process_queue, offset in added:
            if not process_queue.dropped:
                self._keeper.begin(queue, process_queue, offset)
        return is_balanced(topic, target, self._table)

    async def _round_by_broker(self, topic: str, assignments: BrokerAssignments) -> bool:
        """The broker assigns the queues, some to pull and some to pop (official updateMessageQueueAssignment)."""
        answer = await assignments.of_topic(topic)
        if answer is None:
            return False
        pulled, popped = answer
        self._keeper.mode_chosen(topic, pulled, popped)
        added, changed = await self._exchange(topic, pulled)
        if self._keeper.exchange_popped(topic, popped):
            changed = True
        if changed:
            assigned = pulled | popped
            await self._announce_change(topic, assigned, assigned)
        for queue, process_queue, offset in added:
            if not process_queue.dropped:
                self._keeper.begin(queue, process_queue, offset)
        return is_balanced(topic, pulled, self._table)

    async def _members(self, topic: str) -> list[str]:
        """The client ids of the group, from any broker of the topic; empty if no broker answers."""
        try:
            address = await self._instance.routes.find_any_broker(topic)
            reply = await self._instance.connections.call(
                address,
                GetConsumerListByGroup(consumer_group=self._group),
                timeout_seconds=self._instance.api_timeout_seconds,
            )
            return reply.consumer_id_list
        except (ClientError, ProtocolError) as error:
            _log.warning("members of %s: %s", self._group, error)
            return []

    async def _exchange(
        self, topic: str, target: Collection[MessageQueue]
    ) -> tuple[list[tuple[MessageQueue, ProcessQueue, int]], bool]:
        """Give up and add queues: what was added with its position, and whether anything changed (official
        updateProcessQueueTableInRebalance)."""
        removals = plan_removals(topic, target, self._table, consume_passively=self._consume_passively)
        dropped = [(queue, self.drop(queue)) for queue in removals.all]
        changed = False
        for queue, process_queue in dropped:
            if process_queue is not None and await self.remove(queue, process_queue):
                changed = True
        added: list[tuple[MessageQueue, ProcessQueue, int]] = []
        unlocked = False
        for queue in plan_additions(target, self._table):
            if not await self._keeper.lock(queue):
                unlocked = True
                continue
            self._keeper.forget_offset(queue)
            process_queue = ProcessQueue(steady_ms)
            process_queue.note_locked(True)
            try:
                offset = await self._keeper.first_position(queue)
            except (ClientError, ProtocolError) as error:
                _log.warning("%s cannot start in %s yet: %s", self._group, queue, error)
                continue
            if queue in self._table:
                continue
            process_queue.began_at = offset
            self._table.add(queue, process_queue)
            added.append((queue, process_queue, offset))
        if unlocked:
            asyncio.get_running_loop().call_later(RETRY_AFTER_NO_LOCK_MS / 1000, self._instance.rebalance_now)
        return added, changed or bool(added)

    async def _announce_change(
        self, topic: str, known: set[MessageQueue], assigned: set[MessageQueue]
    ) -> None:
        """The brokers should know the change before the first pulls come; slow ones are not waited for."""
        announced = self._instance.spawn(
            self._keeper.queues_changed(topic, known, assigned), f"change of {topic}"
        )
        await asyncio.wait({announced}, timeout=FIRST_PULL_DELAY_MS / 1000)
