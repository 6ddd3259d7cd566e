"""What a client instance and its groups ask of each other: a consumer, a producer, and the question of a transaction.

Not the groups themselves: `producing/producer.py`, `push/push_consumer.py`, `pulling/lite_pull_consumer.py`.
"""

from collections.abc import Iterable
from typing import Final, Protocol

import msgspec
from pocketmq.protocol.bodies.client import ConsumerData
from pocketmq.protocol.bodies.client_state import ConsumeMessageDirectlyResult, ConsumerRunningInfo
from pocketmq.protocol.message.message_queue import MessageQueue

from ..connections.connection import Connection
from ..values.message import MessageExt

INNER_PRODUCER_GROUP: Final = "CLIENT_INNER_PRODUCER"
"""The group that a consumer sends failed messages with, announced by every client."""


class GroupConsumer(Protocol):
    """What the instance asks of a consumer (official MQConsumerInner)."""

    @property
    def group(self) -> str: ...
    def consumer_data(self) -> ConsumerData:
        """Its part of a heartbeat."""
        ...

    def subscribed_topics(self) -> Iterable[str]:
        """Topics whose routes it needs."""
        ...

    async def rebalance(self) -> bool:
        """Share out the queues; True where the result is what it should be."""
        ...

    async def persist_offsets(self) -> None: ...
    async def reset_offsets(self, topic: str, offsets: dict[MessageQueue, int]) -> None: ...
    def consumer_status(self, topic: str) -> dict[MessageQueue, int]: ...
    async def running_info(self) -> ConsumerRunningInfo: ...
    async def consume_directly(self, message: MessageExt) -> ConsumeMessageDirectlyResult | None: ...
    def reconnected(self, address: str) -> None: ...


class GroupProducer(Protocol):
    """What the instance asks of a producer (official MQProducerInner)."""

    @property
    def group(self) -> str: ...
    def published_topics(self) -> Iterable[str]: ...
    def check_transaction(self, connection: Connection, question: "TransactionQuestion") -> None:
        """A broker asks what became of a half message."""
        ...

    def reply_arrived(self, correlation_id: str, reply: MessageExt) -> bool:
        """A reply to a request of this client; False where nobody waits for it."""
        ...


class TransactionQuestion(msgspec.Struct, frozen=True):
    """One CHECK_TRANSACTION_STATE: the half message, and what its answer must repeat."""

    message: MessageExt
    transaction_state_table_offset: int
    commit_log_offset: int
    msg_id: str
    transaction_id: str | None
    broker_name: str | None
