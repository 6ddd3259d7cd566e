"""A consumer that shares queues with its group: what push and lite pull consumers have in common.

`PushConsumer` and `LitePullConsumer` say which queues they make, and how they begin and leave. Mirrors what
`DefaultMQPushConsumerImpl` and `DefaultLitePullConsumerImpl` repeat.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from pocketmq.protocol.bodies.client import MessageModel
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import is_retry_topic
from pocketmq.protocol.requests.membership import UnregisterClient

from ..arguments import checks_arguments
from ..errors import AssignmentTimeout, ClientError, RouteNotFound
from ..instance.client import Client
from ..instance.instance import ClientInstance
from ..offsets.broker_store import RemoteBrokerOffsetStore
from ..offsets.file_store import LocalFileOffsetStore
from ..offsets.offset_store import OffsetStore
from ..settings.consumer_settings import ConsumerSettings
from ..values.validators import check_topic
from .consumer_context import ConsumerContext, ConsumerStatistics
from .held_queues import HeldQueues
from .subscriptions import Subscriptions

_log = logging.getLogger(__name__)

QueuesT = TypeVar("QueuesT", bound=HeldQueues)


@checks_arguments
class GroupMember(Client, ABC, Generic[QueuesT]):
    """A subclass sets `_subscriptions` in its constructor."""

    settings: ConsumerSettings
    _trace_kind = "CONSUME"
    _subscriptions: Subscriptions
    _own_offsets: OffsetStore | None = None
    _held: QueuesT | None = None

    @abstractmethod
    def _make_queues(self, context: ConsumerContext[Any]) -> QueuesT:
        """The queues of the consumer that starts, none yet."""

    def subscribe(self, topic: str, expression: str = "*", expression_type: str = "TAG") -> None:
        """Read a topic: `*`, tags as `A || B`, or with expression_type SQL92 an expression of properties. Also before
        the start.

        After the start the brokers learn it at once, and the queues follow with the next round: `wait_assigned`.
        """
        self._check_usable()
        topic = self._add_subscription(topic, expression, expression_type)
        if self._instance is not None:
            self._queues.share_known.clear()
            self._instance.spawn(self._announce([topic]), f"subscribe {topic}")

    def unsubscribe(self, topic: str) -> None:
        """Stop reading a topic: its queues are given up in the next round."""
        self._check_usable()
        self._subscriptions.pop(self._namespace.wrap(topic), None)

    async def queues(self, topic: str) -> list[MessageQueue]:
        """Readable queues of a topic (official fetchMessageQueues); `RouteNotFound` if it has none."""
        route = await self._require_running().routes.find_route(self._namespace.wrap(topic))
        return [self._namespace.unwrap_queue(queue) for queue in route.read_queues()]

    async def wait_assigned(self, timeout_ms: int | None = 30_000) -> None:
        """Return once a complete round with every subscribed topic is over: this member holds its share.
        `AssignmentTimeout` if that takes longer than `timeout_ms`, `ClientClosed` if the consumer is shut down before.
        """
        queues = self._ready
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                await queues.share_known.wait()
        except TimeoutError as error:
            raise AssignmentTimeout(
                f"{self._group} has no share of {', '.join(self._subscriptions)} within {timeout_ms} ms"
            ) from error
        self._require_running()  # shutdown ends the wait too

    def assignment(self) -> list[MessageQueue]:
        """The queues read now, without those of the retry topic, sorted; empty before the start."""
        if self._instance is None:
            return []
        held = sorted(self._queues.assignment())
        return [self._namespace.unwrap_queue(queue) for queue in held if not is_retry_topic(queue.topic)]

    def positions(self) -> dict[MessageQueue, int]:
        """The next message to consume in each queue read: what is committed next, or where this member began to read.

        Queues whose beginning is still looked for, and queues that are popped, are left out.
        """
        return {self._namespace.unwrap_queue(queue): at for queue, at in self._ready.positions().items()}

    async def lag(self) -> dict[MessageQueue, int]:
        """Messages of each queue that are not consumed yet: the broker's maximum minus the position. Raises what asking
        the broker raises."""
        behind = await self._ready.lag()
        return {self._namespace.unwrap_queue(queue): count for queue, count in behind.items()}

    # -- life

    async def _build(self, instance: ClientInstance) -> None:
        offsets = self._own_offsets
        if offsets is None and self.settings.message_model is MessageModel.CLUSTERING:
            offsets = RemoteBrokerOffsetStore(instance, self._group)
        elif offsets is None:
            offsets = LocalFileOffsetStore(instance.client_id, self._group)
        statistics = ConsumerStatistics(instance.loop.time)
        self._held = self._make_queues(
            ConsumerContext(
                instance, self._group, self.settings, self._subscriptions, offsets, statistics, self._hooks
            )
        )
        await offsets.load()

    def _register(self, instance: ClientInstance) -> None:
        instance.groups.add_consumer(self._queues)

    async def _unregister(self, instance: ClientInstance) -> None:
        await instance.unregister(UnregisterClient(client_id=instance.client_id, consumer_group=self._group))

    def _withdraw(self, instance: ClientInstance) -> None:
        instance.groups.consumers.pop(self._group, None)
        self._queues.drop_all()
        self._queues.share_known.set()

    @property
    def _queues(self) -> QueuesT:
        """The queues, also after shutdown. ClientClosed before the start."""
        if self._held is None:
            raise self._not_started()
        return self._held

    @property
    def _ready(self) -> QueuesT:
        """The queues. ClientClosed before the start, after shutdown, or in another loop or thread."""
        self._require_running()
        return self._queues

    def _add_subscription(self, topic: str, expression: str, expression_type: str = "TAG") -> str:
        """Returns the topic with its namespace."""
        topic = self._namespace.wrap(topic)
        check_topic(topic)
        self._subscriptions.subscribe(topic, expression, expression_type)
        return topic

    async def _announce(self, topics: Iterable[str]) -> None:
        """Find the routes, send the subscriptions to the brokers, and ask for a round."""
        instance = self._running
        answered = all(await asyncio.gather(*map(self._find_route, topics)))
        if await instance.heartbeats.send():
            instance.rebalance_now()
        elif not instance.routes.brokers.all_addresses():
            self._queues.rebalance_without_brokers(answered=answered)

    async def _find_route(self, topic: str) -> bool:
        """Whether a name server answered, be it that the topic does not exist."""
        try:
            await self._running.routes.find_route(topic)
        except ClientError as error:
            if not is_retry_topic(topic):
                _log.warning("%s: %s", self._group, error)
            return isinstance(error, RouteNotFound)
        return True
