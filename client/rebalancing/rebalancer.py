"""The queues of one consumer: which it holds, and the round that takes and gives up queues.

What a round decides is `plan.py`; here the questions are asked and the answers acted upon, through the
`QueueKeeper` that owns locks, offsets and pull loops. Rounds of one consumer never overlap: the client instance runs
them one after the other. Differs from 5.x in one point: pulls of new queues begin as soon as the brokers know the new
subscription version, at the latest after the official 500 ms, not always after 500 ms. Mirrors `RebalanceImpl`.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Protocol

from pocketmq.protocol.bodies.client import MessageModel
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.membership import GetConsumerListByGroup

from ..clock import steady_ms
from ..errors import AllocationFailed, ClientError
from ..settings.allocation import AllocateMessageQueueStrategy
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

if TYPE_CHECKING:
    from ..instance.instance import ClientInstance
    from ..push.pop_queues import PopQueues
    from .broker_assignments import BrokerAssignments

_log = logging.getLogger(__name__)


class QueueKeeper(Protocol):
    """What a round asks of the consumer."""

    async def lock(self, queue: MessageQueue) -> bool:
        """Lock a queue at its broker; True without asking where the consumer needs no locks."""
        ...

    async def first_position(self, queue: MessageQueue) -> int:
        """Where to begin; ClientError where that is not known now."""
        ...

    def forget_offset(self, queue: MessageQueue) -> None:
        """Drop what memory holds of a queue that is about to be taken."""
        ...

    def end(self, queue: MessageQueue, state: ProcessQueue) -> None:
        """The queue was dropped: stop pulling it."""
        ...

    async def release(self, queue: MessageQueue, state: ProcessQueue) -> bool:
        """Persist and unlock a dropped queue; False where its listener still runs."""
        ...

    def begin(self, queue: MessageQueue, state: ProcessQueue, offset: int) -> None:
        """Start pulling a queue that was taken."""
        ...

    async def queues_changed(self, topic: str, known: set[MessageQueue], mine: set[MessageQueue]) -> None:
        """The share of a topic changed."""
        ...

    def mode_chosen(self, topic: str, pulled: set[MessageQueue], popped: set[MessageQueue]) -> None:
        """The broker says which queues of a topic are pulled, and which popped."""
        ...


class Rebalancer:
    """`table` is what the consumer holds now, dropped queues that could not be released among them."""

    def __init__(
        self,
        instance: "ClientInstance",
        keeper: QueueKeeper,
        group: str,
        *,
        message_model: MessageModel,
        strategy: AllocateMessageQueueStrategy,
        consume_passively: bool,
        assignments: "BrokerAssignments | None" = None,
        pops: "PopQueues | None" = None,
    ) -> None:
        """`assignments` and `pops` together: the broker decides, and what it wants popped goes to `pops`."""
        self._instance = instance
        self._keeper = keeper
        self._group = group
        self._message_model = message_model
        self._strategy = strategy
        self._consume_passively = consume_passively
        self._assignments = assignments
        self._pops = pops
        self.table: dict[MessageQueue, ProcessQueue] = {}
        self.unbalanced: set[str] = set()
        """Topics whose share was not what it should be after the last round."""

    async def round(self, topics: Iterable[str]) -> bool:
        """Share out the queues of these topics and give up those of all others. True where everything is as it
        should be."""
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
        for queue in plan_truncation(wanted, self.table):
            self.drop(queue)
            del self.table[queue]
        if self._pops is not None:
            self._pops.keep_only(wanted)
        return balanced

    def drop(self, queue: MessageQueue) -> ProcessQueue | None:
        """Mark a queue dropped and stop its pulls; it stays in the table."""
        state = self.table.get(queue)
        if state is not None:
            state.dropped = True
            self._keeper.end(queue, state)
        return state

    def drop_all(self) -> None:
        """Drop everything and empty the table (official destroy)."""
        for queue in list(self.table):
            self.drop(queue)
        self.table.clear()

    async def remove(self, queue: MessageQueue, state: ProcessQueue) -> bool:
        """Release a dropped queue and take it off the table, unless its listener still runs."""
        if not await self._keeper.release(queue, state):
            return False
        if self.table.get(queue) is state:
            del self.table[queue]
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
        if step is FirstStep.TELL_NO_QUEUES:
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
            await self._tell(topic, set(known), target)
        for queue, state, offset in added:
            if not state.dropped:
                self._keeper.begin(queue, state, offset)
        return is_balanced(topic, target, self.table)

    async def _round_by_broker(self, topic: str, assignments: "BrokerAssignments") -> bool:
        """updateMessageQueueAssignment: the broker says what is ours, and whether to pull or to pop it."""
        assigned = await assignments.of_topic(topic)
        if assigned is None:
            return False
        pulled, popped = assigned
        self._keeper.mode_chosen(topic, pulled, popped)
        added, changed = await self._exchange(topic, pulled)
        if self._pops is not None and self._pops.exchange(topic, popped):
            changed = True
        if changed:
            mine = pulled | popped
            await self._tell(topic, mine, mine)
        for queue, state, offset in added:
            if not state.dropped:
                self._keeper.begin(queue, state, offset)
        return is_balanced(topic, pulled, self.table)

    async def _members(self, topic: str) -> list[str]:
        """The client ids of the group, from any broker of the topic; empty where nobody could be asked."""
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
        """updateProcessQueueTableInRebalance: what was added with its position, and whether anything changed."""
        removals = plan_removals(topic, target, self.table, consume_passively=self._consume_passively)
        dropped = [(queue, self.drop(queue)) for queue in removals.all]
        changed = False
        for queue, state in dropped:
            if state is not None and await self.remove(queue, state):
                changed = True
        added: list[tuple[MessageQueue, ProcessQueue, int]] = []
        unlocked = False
        for queue in plan_additions(target, self.table):
            if not await self._keeper.lock(queue):
                unlocked = True
                continue
            self._keeper.forget_offset(queue)
            state = ProcessQueue(steady_ms)
            state.note_locked(True)
            try:
                offset = await self._keeper.first_position(queue)
            except (ClientError, ProtocolError) as error:
                _log.warning("%s does not take %s yet: %s", self._group, queue, error)
                continue
            if queue in self.table:
                continue
            state.began_at = offset
            self.table[queue] = state
            added.append((queue, state, offset))
        if unlocked:
            asyncio.get_running_loop().call_later(RETRY_AFTER_NO_LOCK_MS / 1000, self._instance.rebalance_now)
        return added, changed or bool(added)

    async def _tell(self, topic: str, known: set[MessageQueue], mine: set[MessageQueue]) -> None:
        """Let the brokers know before the first pulls come, but do not wait long for those that do not answer."""
        told = self._instance.spawn(self._keeper.queues_changed(topic, known, mine), f"change of {topic}")
        await asyncio.wait({told}, timeout=FIRST_PULL_DELAY_MS / 1000)
