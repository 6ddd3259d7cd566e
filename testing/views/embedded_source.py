"""The embedded server as a source: looks into the parts of its broker, on its loop."""

from collections.abc import Coroutine
from typing import Any, Final, Literal

from pocketmq.broker.broker import Broker
from pocketmq.broker.errors import PeerError, Refusal
from pocketmq.broker.first_position.verdict import explain
from pocketmq.client import SubscriptionGroupConfig, TopicConfig
from pocketmq.console.values import FirstPosition, Member, first_position
from pocketmq.protocol.bodies.client_state import ConsumerRunningInfo
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.topics import is_retry_topic
from pocketmq.protocol.requests.send import SendMessageReply, SendMessageV2
from pocketmq.protocol.requests.to_client import GetConsumerRunningInfo
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.schema import read_reply

from ..errors import TestingError
from ..server.embedded import EmbeddedServer
from ..state.load import DEFAULT_QUEUES
from .filters import count_wanted
from .group_views import members_of, subscriptions_of
from .popped import unacknowledged
from .source import QueueEnds, ResultT
from .stored_message import StoredMessage
from .topic_views import stored_messages

ASK_SECONDS: Final = 1.0
"""How long a member may take to answer 307."""


class EmbeddedSource:
    """See `Source`."""

    look_seconds = 0.002

    def __init__(self, server: EmbeddedServer) -> None:
        self._server = server

    @property
    def emulate(self) -> Literal[4, 5]:
        return self._broker.config.emulate

    @property
    def _broker(self) -> Broker:
        return self._server.broker

    def run(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        return self._server.run(work)

    async def run_async(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        return await self._server.run_async(work)

    # -- looking

    async def messages(self, topic: str) -> list[StoredMessage]:
        return stored_messages(self._broker, topic)

    async def queue_ends(self, topic: str) -> QueueEnds:
        queues = self._broker.store.queues_of(topic)
        return {queue.queue_id: (queue.min_offset, queue.max_offset) for queue in queues}

    async def offsets(self, topic: str, group: str) -> dict[int, int]:
        return self._broker.offsets.offsets(topic, group) or {}

    async def members(self, group: str) -> list[Member]:
        return members_of(self._broker, group)

    async def subscriptions(self, group: str) -> dict[str, str]:
        return subscriptions_of(self._broker, group)

    async def is_broadcasting(self, group: str) -> bool:
        online = self._broker.membership.consumers.get(group)
        return online is not None and online.is_broadcasting

    async def count_wanted(
        self, topic: str, group: str, ranges: dict[int, tuple[int, int]], most: int | None
    ) -> int:
        return await count_wanted(self._broker, self._server.watched.log, topic, group, ranges, most)

    async def unacknowledged(self, topic: str, group: str) -> int:
        return await unacknowledged(self._broker, topic, group)

    async def unknown_name(self, topic: str | None, group: str | None) -> str | None:
        broker = self._broker
        if topic is not None and broker.topics.find(topic) is None:
            return f"there is no topic {topic}{_similar(broker, topic)}"
        if group is None or group in broker.groups or broker.membership.consumers.get(group) is not None:
            return None
        return f"there is no group {group}"

    async def running_info(self, group: str, client_id: str) -> ConsumerRunningInfo | None:
        client = self._broker.membership.consumers.find(group, client_id)
        if client is None:
            return None
        request = GetConsumerRunningInfo(consumer_group=group, client_id=client_id)
        try:
            answer = await client.connection.exchange(request, timeout_seconds=ASK_SECONDS)
            if answer.code != ResponseCode.SUCCESS or answer.body is None:
                return None
            return read_reply(request, answer.fields, answer.body)
        except (PeerError, Refusal, BodyError):
            return None

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
        broker = self._broker
        return broker.store.log_end, dict(broker.offsets.offsets(topic, group) or {})

    # -- changing

    async def make_topic(self, config: TopicConfig) -> None:
        self._broker.topics.update(config)
        await self._broker.cluster.registration.settled()

    async def make_group(self, config: SubscriptionGroupConfig) -> None:
        self._broker.groups.update(config)

    async def before_send(self, topic: str) -> tuple[int, str]:
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
