"""The embedded server as a source, where views and waits look: looks into the parts of its broker, on its loop."""

import asyncio
from typing import Final, Literal

from pocketmq.broker.broker import Broker
from pocketmq.broker.first_position.verdict import explain
from pocketmq.console.broker_values import members_of, running_info
from pocketmq.console.values import FirstPosition, Member, first_position
from pocketmq.protocol.bodies.client_state import ConsumerRunningInfo
from pocketmq.protocol.message.topics import is_retry_topic
from pocketmq.protocol.requests.send import SendMessageReply, SendMessageV2

from ..errors import TestingError
from ..ledger.book import Subscription, Subscriptions
from ..ledger.stored import Wanted, entry_at, wanted
from ..requests.request_log import RequestLog
from ..server.embedded import EmbeddedServer
from ..state.load import DEFAULT_QUEUES, Load, apply_load
from .pending import ENTRIES_A_TURN, unacknowledged
from .values import HeldPull, Lock, QueueEnds, StoredMessage, stored_message

ASK_SECONDS: Final = 1.0
"""How long a member may take to answer 307."""


class EmbeddedSource:
    """Every coroutine runs on the loop of the source; `run` and `run_async` bring it there, from a thread that may wait
    and from another loop. None of them changes anything at the server, but `load` and `send`. An unknown topic has no
    messages and no offsets; an unknown group no members."""

    look_seconds = 0.002
    """How often a wait looks."""

    def __init__(self, server: EmbeddedServer) -> None:
        self._server = server
        self.run, self.run_async = server.run, server.run_async

    @property
    def emulate(self) -> Literal[4, 5]:
        return self._broker.config.emulate

    @property
    def _broker(self) -> Broker:
        return self._server.broker

    # -- looking

    async def messages(self, topic: str) -> list[StoredMessage]:
        broker = self._broker
        found = [
            stored_message(entry[2])
            for queue in broker.store.queues_of(topic)
            for offset in range(queue.min_offset, queue.max_offset)
            if (entry := entry_at(broker, queue, offset)) is not None
        ]
        return sorted(found, key=lambda message: message.position)

    async def queue_ends(self, topic: str) -> QueueEnds:
        queues = self._broker.store.queues_of(topic)
        return {queue.queue_id: (queue.min_offset, queue.max_offset) for queue in queues}

    async def offsets(self, topic: str, group: str) -> dict[int, int]:
        return self._broker.offsets.offsets(topic, group) or {}

    async def members(self, group: str) -> list[Member]:
        return list(members_of(self._broker, group))

    async def subscriptions(self, group: str) -> dict[str, str]:
        online = self._broker.membership.consumers.get(group)
        subscriptions = {} if online is None else online.subscriptions
        return {topic: subscription.sub_string or "*" for topic, subscription in subscriptions.items()}

    async def is_broadcasting(self, group: str) -> bool:
        online = self._broker.membership.consumers.get(group)
        return online is not None and online.is_broadcasting

    async def count_wanted(
        self, topic: str, group: str, ranges: dict[int, tuple[int, int]], most: int | None
    ) -> int:
        """How many messages of these parts of queues (first offset, end) the group's filter matches; with `most`, the
        count may stop there."""
        wants = _wanted_by(self._broker, self._server.watched.log, topic, group)
        if wants is None:
            return sum(end - begin for begin, end in ranges.values())
        count = seen = 0
        for queue_id, (begin, end) in ranges.items():
            queue = self._broker.store.consume_queue(topic, queue_id)
            for offset in range(begin, end) if queue is not None else ():
                entry = entry_at(self._broker, queue, offset) if queue is not None else None
                count += entry is not None and wants(*entry[1:])
                if count == most:
                    return count
                seen += 1
                if seen % ENTRIES_A_TURN == 0:
                    await asyncio.sleep(0)
        return count

    async def unacknowledged(self, topic: str, group: str) -> int:
        """How many messages of a topic the group has popped and not acknowledged."""
        return await unacknowledged(self._broker, topic, group)

    async def unknown_name(self, topic: str | None, group: str | None) -> str | None:
        """What is wrong with the names, in words; `None` if both exist."""
        broker = self._broker
        if topic is not None and broker.topics.find(topic) is None:
            return f"there is no topic {topic}{_similar(broker, topic)}"
        if group is None or group in broker.groups or broker.membership.consumers.get(group) is not None:
            return None
        return f"there is no group {group}"

    async def running_info(self, group: str, client_id: str) -> ConsumerRunningInfo | None:
        """What a member says of itself (307); `None` if it does not answer."""
        client = self._broker.membership.consumers.find(group, client_id)
        return None if client is None else await running_info(client, group, ASK_SECONDS)

    async def explain(self, group: str, topic: str) -> list[FirstPosition]:
        broker = self._broker
        config = broker.topics.find(topic)
        if config is None:
            raise TestingError(f"there is no topic {topic}{_similar(broker, topic)}")
        online = broker.membership.consumers.get(group)
        where = None if online is None else online.consume_from_where
        return [
            first_position(explain(broker.state, group, topic, queue_id), broker.config.broker_name, where)
            for queue_id in range(config.read_queue_nums)
        ]

    async def state(self, topic: str, group: str) -> object:
        """Differs as soon as something was stored, or committed by the group."""
        broker = self._broker
        return broker.store.log_end, dict(broker.offsets.offsets(topic, group) or {})

    # -- changing

    async def load(self, load: Load) -> None:
        await apply_load(self._server.node, load)

    async def before_send(self, topic: str) -> tuple[int, str]:
        """How many queues a topic has or will have, and an id for the message."""
        config = self._broker.topics.find(topic)
        queues = DEFAULT_QUEUES if config is None else config.write_queue_nums
        return max(queues, 1), self._broker.state.unique_ids.next()

    async def send(self, request: SendMessageV2, body: bytes) -> SendMessageReply:
        return (await self._server.exchange_async(request, body))[0]


def _similar(broker: Broker, topic: str) -> str:
    """The topics that a test made, if there are few."""
    names = [
        name
        for name in broker.topics.topics
        if not broker.topics.is_system_topic(name) and not is_retry_topic(name)
    ]
    return f"; there are {', '.join(sorted(names))}" if 0 < len(names) <= 10 else ""


def queue_locks(broker: Broker) -> list[Lock]:
    return [
        Lock(group=group, topic=queue.topic, queue_id=queue.queue_id, client_id=client_id)
        for group, queue, client_id in broker.membership.locks.list_held(broker.clock.now_ms())
    ]


def held_pulls_of(broker: Broker) -> list[HeldPull]:
    return [
        HeldPull(
            group=waiter.request.consumer_group,
            topic=waiter.request.topic,
            queue_id=waiter.request.queue_id,
            offset=waiter.request.queue_offset,
        )
        for waiter in broker.pulling.waiters.waiting()
        if not waiter.call.connection.closed
    ]


def _wanted_by(broker: Broker, log: RequestLog, topic: str, group: str) -> Wanted | None:
    """None: all messages."""
    online = broker.membership.consumers.get(group)
    data = None if online is None else online.subscriptions.get(topic)
    own = None if data is None else {(data.expression_type, data.sub_string or "*")}
    subscriptions = own or _logged(log, topic, group)
    if not subscriptions or any(expression == "*" for _, expression in subscriptions):
        return None
    return wanted(topic, subscriptions, is_5=broker.config.is_5)


def _logged(log: RequestLog, topic: str, group: str) -> set[Subscription]:
    logged = Subscriptions()
    for kept in log.single_entries():
        logged.read(kept)
    return logged.by_pair.get((topic, group), set())
