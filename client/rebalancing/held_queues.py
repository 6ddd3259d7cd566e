"""The queues a consumer holds, and the rounds that change them: what push and lite pull consumers have in common.

A round gives each topic its share: it marks the queues of others dropped, all of them before anything is awaited, and
gives up one after the other (persist, forget the offset, unlock); then it adds what is missing, one after the other
(lock, new process queue that counts as locked, first position). A queue that cannot be given up, because its ordered
listener runs, stays in the table, and is not added again before it is; one that cannot be added is left out. Either
waits for a later round. Queues of topics that are no longer subscribed are removed without persisting and unlocking.

Pulling and giving queues up differ: `push/push_queues.py` and `pulling/lite_pull_queues.py`. Rounds of one consumer
never overlap: `RebalanceService` runs them one after the other. Differs from 5.x in one point: pulls of new queues
begin as soon as the brokers know the new subscription version, at the latest after the official 500 ms, not always
after 500 ms. 4.9 clients lock ordered queues of BROADCASTING groups too, start pulls at once, do not retry early, and
know neither "no queues" nor "balanced". Mirrors `RebalanceImpl`, and what `RebalancePushImpl` and
`RebalanceLitePullImpl` share.
"""

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any, Final

from pocketmq.protocol.bodies.client import ConsumerData, ConsumeType
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.queue_allocation import sort_client_ids, sort_queues
from pocketmq.protocol.message.topics import is_retry_topic
from pocketmq.protocol.requests.membership import GetConsumerListByGroup

from ..clock import steady_ms
from ..errors import AllocationFailed, ClientError, RouteNotFound
from ..instance.groups import GroupConsumer
from ..offsets.queue_offsets import max_offset
from .consumer_context import ConsumerContext
from .first_position import first_position
from .flow_control import FIRST_PULL_DELAY_MS
from .process_queue import ProcessQueue, QueueTable

_log = logging.getLogger(__name__)

Added = tuple[MessageQueue, ProcessQueue, int]
"""A queue that was added, with the offset to begin at."""

RETRY_AFTER_NO_LOCK_MS: Final = 500
TOPIC_SEARCHES: Final = 10
"""How often, once a second, to ask for missing topics before the regular refresh of routes does it."""


class HeldQueues(GroupConsumer):
    """`table` is what the consumer holds."""

    def __init__(self, context: ConsumerContext[Any], *, consume_passively: bool) -> None:
        self.group = context.group
        self.offsets = context.offsets
        self.is_clustering = context.is_clustering
        self.table = QueueTable()
        self.share_known = asyncio.Event()
        """Set once a round left every topic but the retry topic as it should be; cleared by a new subscription."""
        self.unbalanced: set[str] = set()
        """Topics whose share was not what it should be after the last round."""
        self.context = context
        self._instance = context.instance
        self._subscriptions = context.subscriptions
        self._consume_passively = consume_passively
        self._stopped = False
        self._missing: set[str] = set()
        self._searches = 0
        self._unreachable: set[str] = set()
        """Brokers that did not answer in this round: the round asks them once."""
        self._is_answered = True
        """The name servers answered the last question about missing topics."""

    async def rebalance(self) -> bool:
        """One round: get this consumer's share of its topics, and give up the queues of all others. True if it now has
        what it should have."""
        balanced = await self._find_missing_topics()
        topics = list(self._subscriptions)
        self.unbalanced.clear()
        self._unreachable.clear()
        for topic in topics:
            try:
                if not await self.round_of(topic):
                    self.unbalanced.add(topic)
            except (ClientError, ProtocolError) as error:
                _log.warning("rebalance of %s in %s: %s", self.group, topic, error)
                self.unbalanced.add(topic)
        for queue in [queue for queue in self.table if queue.topic not in topics]:
            process_queue = self.drop(queue)
            if process_queue is not None:
                self.table.discard(queue, process_queue)
        if self._is_answered and all(
            is_retry_topic(topic) or (topic in topics and topic not in self.unbalanced)
            for topic in self._subscriptions
        ):
            self.share_known.set()
        return balanced and not self.unbalanced

    def assignment(self) -> Iterable[MessageQueue]:
        """The queues that are read now."""
        return self.table.live()

    def positions(self) -> dict[MessageQueue, int]:
        """The next message to consume in each queue held, without those of the retry topic: what was committed last, or
        where this member began to read."""
        found = {}
        for queue, process_queue in sorted(self.table.items(), key=lambda item: item[0]):
            if not process_queue.dropped and not is_retry_topic(queue.topic):
                offset = self.offsets.read(queue)
                found[queue] = offset if offset >= 0 else process_queue.start_offset
        return found

    async def lag(self) -> dict[MessageQueue, int]:
        """How many messages are behind each position."""
        behind = {}
        for queue, position in self.positions().items():
            behind[queue] = await max_offset(self._instance, queue) - position
        return behind

    def held(self) -> list[MessageQueue]:
        """The queues whose offsets are persisted."""
        return list(self.table)

    def rebalance_without_brokers(self, *, answered: bool) -> None:
        """No broker is known, so no heartbeat was sent. A consumer without topics has all it can have; one whose topics
        are missing rebalances all the same, because the next round then follows within a second. `answered`: the name
        servers answered for each topic; a push consumer without answers waits for its regular round."""
        if self._consume_passively and not answered:
            return
        if all(map(is_retry_topic, self._subscriptions)):
            self.share_known.set()
        elif self._instance.routes.missing(self._subscriptions):
            self._instance.rebalance_now()

    # -- what the instance asks (official MQConsumerInner)

    def consumer_data(self) -> ConsumerData:
        settings, passive = self.context.settings, self._consume_passively
        return ConsumerData(
            group_name=self.group,
            consume_type=ConsumeType.CONSUME_PASSIVELY if passive else ConsumeType.CONSUME_ACTIVELY,
            message_model=settings.message_model,
            consume_from_where=settings.consume_from_where if passive else "CONSUME_FROM_LAST_OFFSET",
            subscription_data_set=[*self._subscriptions.values()],
            unit_mode=settings.unit_mode,
        )

    def subscribed_topics(self) -> list[str]:
        return list(self._subscriptions)

    async def persist_offsets(self) -> None:
        await self.offsets.persist_all(self.held())

    def consumer_status(self, topic: str) -> dict[MessageQueue, int]:
        return self.offsets.of_topic(topic)

    # -- giving queues up

    def drop(self, queue: MessageQueue) -> ProcessQueue | None:
        """Mark a queue dropped and stop its pulls; it stays in the table until it is released."""
        process_queue = self.table.get(queue)
        if process_queue is not None:
            process_queue.dropped = True
            self.end(queue, process_queue)
        return process_queue

    def drop_all(self) -> None:
        """Give up everything at once: the consumer has left the group (official destroy)."""
        for queue in list(self.table):
            self.drop(queue)
        self.table.clear()

    async def remove(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """Release a dropped queue and remove it, unless its listener still runs."""
        if not await self.release(queue, process_queue):
            return False
        self.table.discard(queue, process_queue)
        return True

    async def first_position(self, queue: MessageQueue) -> int:
        """Where the group goes on in a queue (official computePullFromWhereWithException)."""
        settings, stored = self.context.settings, await self.stored_offset(queue)
        where, timestamp = settings.consume_from_where, settings.consume_timestamp
        return await first_position(self._instance, queue, stored, where, timestamp)

    async def _find_missing_topics(self) -> bool:
        """Ask again soon for topics that do not exist yet; the official client waits for its next refresh of routes.
        False while some are missing. The retry topic is one of them at first: the broker creates it with the group's
        first heartbeat and registers it at the name servers a moment later."""
        routes = self._instance.routes
        missing = routes.missing(self._subscriptions)
        if missing != self._missing:
            self._missing, self._searches = missing, 0
        if not missing or self._searches >= TOPIC_SEARCHES:
            self._is_answered = self._is_answered or not missing
            return True
        self._searches += 1
        try:
            for topic in missing:
                with suppress(RouteNotFound):
                    await routes.find_route(topic)
            self._is_answered = True
        except ClientError as error:
            self._is_answered = False
            _log.debug("the topics %s are not found: %s", missing, error)
        return not routes.missing(missing)

    # -- one topic

    async def round_of(self, topic: str) -> bool:
        """Get this consumer's share of a topic, and give up its other queues. True if it has what it should have."""
        context = self.context
        route = self._instance.routes.route(topic)
        known = None if route is None else route.read_queues()
        if known is None or (self.is_clustering and not known):
            if not (self.is_clustering and is_retry_topic(topic)):
                await self.queues_changed(topic, set(), set())
            return True
        if not self.is_clustering:
            target = set(known)
        else:
            members = await self._members(topic)
            if not members:
                return False
            strategy = context.settings.allocate_message_queue_strategy
            try:
                own_id, ids = self._instance.client_id, sort_client_ids(members)
                target = set(strategy.allocate(self.group, own_id, sort_queues(known), ids))
            except AllocationFailed as error:
                _log.error("allocation of %s for %s with %s: %s", topic, self.group, strategy.name, error)
                return False
        changed = await self.give_up(topic, target)
        await self.add(topic, target, set(known), target, changed=changed)
        return self.table.is_balanced(topic, target)

    async def _members(self, topic: str) -> list[str]:
        """The client ids of the group, from any broker of the topic; empty if no broker answers."""
        instance = self._instance
        try:
            address = await instance.routes.find_any_broker(topic)
            request = GetConsumerListByGroup(consumer_group=self.group)
            reply = await instance.connections.call(
                address, request, timeout_seconds=instance.api_timeout_seconds
            )
            return reply.consumer_id_list
        except (ClientError, ProtocolError) as error:
            _log.warning("members of %s: %s", self.group, error)
            return []

    async def give_up(self, topic: str, target: Collection[MessageQueue]) -> bool:
        """Give up the queues of a topic that are not this consumer's any more; whether there were any."""
        lost = self.table.lost(topic, target, with_dead_loops=self._consume_passively)
        dropped = [(queue, self.drop(queue)) for queue in lost]
        changed = False
        for queue, process_queue in dropped:
            if process_queue is not None and await self.remove(queue, process_queue):
                changed = True
        return changed

    async def add(
        self,
        topic: str,
        target: Collection[MessageQueue],
        known: set[MessageQueue],
        assigned: set[MessageQueue],
        *,
        changed: bool,
    ) -> None:
        """Add the queues that are missing, and begin with them (official updateProcessQueueTableInRebalance).

        First those of brokers with a connection: whether a dead broker is dead may take seconds to find out.
        """
        additions = self.table.missing(target)
        connected = [queue for queue in additions if self._is_connected(queue)]
        others = [queue for queue in additions if queue not in connected]
        for queues in [part for part in (connected, others) if part] or [[]]:
            added = [found for queue in queues if (found := await self._try_to_add(queue)) is not None]
            if changed or added:
                change = self.queues_changed(topic, known, assigned)
                told = self._instance.spawn(change, f"change of {topic}")
                # The brokers should know the change before the first pulls come; slow ones are not waited for.
                await asyncio.wait({told}, timeout=FIRST_PULL_DELAY_MS / 1000)
            changed = False
            for queue, process_queue, offset in added:
                if not process_queue.dropped:
                    self.begin(queue, process_queue, offset)

    def _is_connected(self, queue: MessageQueue) -> bool:
        address = self._instance.routes.member(queue.broker_name)
        return address is not None and self._instance.connections.live(address) is not None

    async def _try_to_add(self, queue: MessageQueue) -> Added | None:
        """Lock a queue, find out where to begin, and enter it in the table; None if that is not possible yet."""
        if queue.broker_name in self._unreachable:
            return None
        added = await self._locked_and_found(queue)
        if added is None and not self._is_connected(queue):
            self._unreachable.add(queue.broker_name)
        return added

    async def _locked_and_found(self, queue: MessageQueue) -> Added | None:
        if not await self.lock(queue):
            loop = self._instance.loop
            loop.call_later(RETRY_AFTER_NO_LOCK_MS / 1000, self._instance.rebalance_now)
            return None
        self.offsets.remove(queue)
        process_queue = ProcessQueue(steady_ms)
        process_queue.note_locked(True)
        try:
            offset = await self.first_position(queue)
        except (ClientError, ProtocolError) as error:
            _log.warning("%s cannot start in %s yet: %s", self.group, queue, error)
            return None
        if queue in self.table:
            return None
        process_queue.start_offset = offset
        self.table[queue] = process_queue
        return queue, process_queue, offset

    # -- what push and lite pull consumers do differently

    async def lock(self, queue: MessageQueue) -> bool:
        """Lock a queue at its broker; True at once for a consumer that needs no locks."""
        return True

    @abstractmethod
    async def stored_offset(self, queue: MessageQueue) -> int:
        """The group's offset: from the store, or from memory first."""

    @abstractmethod
    def end(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        """The queue was dropped: stop pulling it."""

    @abstractmethod
    async def release(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """Persist and unlock a dropped queue; False if its listener still runs."""

    @abstractmethod
    def begin(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int) -> None:
        """Start pulling a queue that was added."""

    @abstractmethod
    async def queues_changed(self, topic: str, known: set[MessageQueue], assigned: set[MessageQueue]) -> None:
        """The share of a topic changed: all its queues, and those of this consumer."""
