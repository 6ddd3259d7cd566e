"""The producers and consumers of one client instance: what it needs of each, and the table that holds them.

Behind them are `producing/sender.py` and `rebalancing/held_queues.py`: what a user calls is apart.
Mirrors `MQConsumerInner`, `MQProducerInner` and the two tables of `MQClientInstance`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Final

from pocketmq.protocol.bodies.client import ConsumerData
from pocketmq.protocol.bodies.client_state import ConsumeMessageDirectlyResult, ConsumerRunningInfo
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.send import CheckTransactionState

from ..connections.connection import Connection
from ..errors import ClientError
from ..values.message import MessageExt

INNER_PRODUCER_GROUP: Final = "CLIENT_INNER_PRODUCER"
"""The group that a consumer sends failed messages with, announced by every client."""


class GroupConsumer(ABC):
    """A consumer, as the instance sees it (official MQConsumerInner)."""

    group: str

    @abstractmethod
    def consumer_data(self) -> ConsumerData:
        """Its part of a heartbeat."""

    @abstractmethod
    def subscribed_topics(self) -> Iterable[str]:
        """Topics whose routes are kept up to date for it."""

    @abstractmethod
    async def rebalance(self) -> bool:
        """Rebalance; True if the consumer now has what it should have."""

    @abstractmethod
    async def persist_offsets(self) -> None:
        """Send the offsets of the queues held to the store."""

    @abstractmethod
    def consumer_status(self, topic: str) -> dict[MessageQueue, int]:
        """The offsets in memory (221)."""

    @abstractmethod
    async def running_info(self) -> ConsumerRunningInfo:
        """The consumer's inner state, as tools show it (307)."""

    async def reset_offsets(self, topic: str, offsets: dict[MessageQueue, int]) -> None:  # noqa: B027
        """Go on elsewhere (220): only push consumers do, as in Java."""

    async def consume_directly(self, message: MessageExt) -> ConsumeMessageDirectlyResult | None:
        """Call the listener for one message now and report what it returned (309); None without a listener."""
        return None

    def reconnected(self, address: str) -> None:  # noqa: B027  # only a push consumer tells its user
        """A broker has a new connection."""


class GroupProducer:
    """A producer, as the instance sees it (official MQProducerInner): here one that sends nothing."""

    def __init__(self, group: str) -> None:
        self.group = group

    def published_topics(self) -> Iterable[str]:
        """Topics whose routes are kept up to date for it."""
        return ()

    def forget_unused_topics(self) -> None:
        """Called once a refresh of the routes."""

    def check_transaction(
        self, connection: Connection, message: MessageExt, request: CheckTransactionState
    ) -> None:
        """A broker asks for the state of a half message's transaction: only a transaction producer can answer."""

    def reply_arrived(self, correlation_id: str, reply: MessageExt) -> bool:
        """A reply to a request of this client; False if no request waits for it: only requesters wait."""
        return False


class GroupTable:
    """The groups of one client instance by name: at most one consumer and one producer of each.

    Who awaits while walking through one of the tables walks through a copy: consumers join and leave.
    """

    def __init__(self) -> None:
        self.consumers: dict[str, GroupConsumer] = {}
        self.producers: dict[str, GroupProducer] = {}

    def __bool__(self) -> bool:
        return bool(self.consumers or self.producers)

    def topics(self) -> set[str]:
        """Every topic that is read or written."""
        topics = {topic for consumer in self.consumers.values() for topic in consumer.subscribed_topics()}
        return topics.union(*(producer.published_topics() for producer in self.producers.values()))

    def add_consumer(self, consumer: GroupConsumer) -> None:
        if self.consumers.setdefault(consumer.group, consumer) is not consumer:
            raise _created_before("consumer", consumer.group)

    def add_producer(self, producer: GroupProducer) -> None:
        if self.producers.setdefault(producer.group, producer) is not producer:
            raise _created_before("producer", producer.group)


def _created_before(kind: str, group: str) -> ClientError:
    return ClientError(f"The {kind} group[{group}] has been created before, specify another name please.")
