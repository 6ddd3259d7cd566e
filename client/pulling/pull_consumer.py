"""A queue read by offset, and its offsets asked for, with the caller deciding every position.

    async with PullConsumer("group") as consumer:
        for queue in await consumer.queues("Orders"):
            result = await consumer.pull(queue, await consumer.min_offset(queue))

No rebalance and no listener. Unlike the official class it does not join its group: tools do not list it among the
members, and members get nothing less because of it. Mirrors `DefaultMQPullConsumer`.
"""

from collections.abc import Iterable
from typing import Final, Unpack

from pocketmq.protocol.bodies.client import ExpressionError, build_subscription
from pocketmq.protocol.message.flags import PULL_SUBSCRIPTION, PULL_SUSPEND
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.offset import ExplainFirstPosition, Verdict

from ..clock import steady_ms
from ..errors import ClientError, NotReachable, RouteNotFound
from ..hooks.hooks import Hook
from ..instance.client import Client
from ..instance.instance import ClientInstance
from ..instance.instance_config import settings_of
from ..offsets.broker_store import RemoteBrokerOffsetStore
from ..offsets.offset_memory import OFFSET_UNREADABLE
from ..producing.producer import trace_of
from ..settings.client_settings import ClientSettings
from ..settings.keywords import ClientOptions
from ..values.results import PullResult
from ..values.validators import check_consumer_group
from .pull_api import PullApi

PULL_TIMEOUT_MS: Final = 10_000
"""For a pull that does not wait (official consumerPullTimeoutMillis)."""
EXTRA_WAIT_MS: Final = 10_000
"""A broker looks at held pulls every 5 s, so an empty answer may come that much after the asked time."""


class PullConsumer(Client):
    """Use as `async with`, in one event loop. Settings are those of `ClientSettings`, as keyword arguments."""

    _called = "PullConsumer"
    _traced_as = "CONSUME"

    def __init__(
        self,
        group: str,
        *,
        settings: ClientSettings | None = None,
        hooks: Iterable[Hook] = (),
        **options: Unpack[ClientOptions],
    ) -> None:
        check_consumer_group(group)
        super().__init__(group, settings_of(ClientSettings, settings, options), hooks, trace_of)

    # -- life

    async def _build(self, instance: ClientInstance) -> None:
        self._api = PullApi(instance, self._group, self._hooks)
        self._offsets = RemoteBrokerOffsetStore(instance, self._group)

    def _register(self, instance: ClientInstance) -> None:
        """This consumer is no member of its group, so it holds the instance instead."""
        instance.hold()

    async def _join(self, instance: ClientInstance) -> None:
        """Nothing is asked before the first call."""

    async def _leave(self, instance: ClientInstance) -> None:
        """Nothing was joined."""

    def _withdraw(self, instance: ClientInstance) -> None:
        instance.release()

    # -- reading

    async def queues(self, topic: str) -> list[MessageQueue]:
        """Readable queues of a topic (official fetchSubscribeMessageQueues); `RouteNotFound` where it has none."""
        route = await self._usable.routes.find_route(self.namespace.wrap(topic))
        return [self.namespace.unwrap_queue(queue) for queue in route.read_queues()]

    async def broker_address(self, queue: MessageQueue) -> str:
        """Where the queue's master listens, `host:port`; `RouteNotFound` where it has none."""
        return await self._usable.routes.find_master(self.namespace.wrap_queue(queue), main_port=True)

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        max_count: int = 32,
        expression: str = "*",
        expression_type: str = "TAG",
        wait_ms: int = 0,
    ) -> PullResult:
        """Messages from `offset` on; with `wait_ms` it waits so long for the first (official pullBlockIfNotFound).

        An offset outside the queue is an answer, not an error: `next_offset` says where to go on. `RequestRefused`,
        `NotReachable` and `RouteNotFound` as they come; after the last two the broker is looked up anew.
        """
        instance, wrapped = self._usable, self.namespace.wrap_queue(queue)
        if offset < 0:
            raise ClientError("offset < 0")
        if max_count <= 0:
            raise ClientError("maxNums <= 0")
        try:
            subscription = build_subscription(
                wrapped.topic, expression, expression_type, sub_version=steady_ms()
            )
        except ExpressionError as error:
            raise ClientError(f"subscription exception: {error}") from error
        try:
            result = await self._api.pull(
                wrapped,
                offset,
                subscription=subscription,
                sends_expression=True,
                sys_flag=PULL_SUBSCRIPTION | (PULL_SUSPEND if wait_ms > 0 else 0),
                max_count=max_count,
                suspend_ms=wait_ms,
                timeout_ms=wait_ms + EXTRA_WAIT_MS if wait_ms > 0 else PULL_TIMEOUT_MS,
            )
        except (NotReachable, RouteNotFound):
            instance.routes.forget(wrapped.topic)
            raise
        for message in result.messages:
            message.topic = self.namespace.unwrap(message.topic)
        return result

    # -- offsets

    async def max_offset(self, queue: MessageQueue) -> int:
        """One past the last message."""
        return await self._api_now.max_offset(self.namespace.wrap_queue(queue))

    async def min_offset(self, queue: MessageQueue) -> int:
        """The first message still there."""
        return await self._api_now.min_offset(self.namespace.wrap_queue(queue))

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The first message stored at or after a time, the end where there is none."""
        return await self._api_now.search_offset(self.namespace.wrap_queue(queue), timestamp_ms)

    async def earliest_store_time(self, queue: MessageQueue) -> int:
        """When the oldest message was stored, epoch ms; -1 for an empty queue."""
        return await self._api_now.earliest_store_time(self.namespace.wrap_queue(queue))

    async def committed(self, queue: MessageQueue) -> int | None:
        """Where the group goes on, as the broker answers it (official fetchConsumeOffset); `None` for "not found"."""
        offset = await self._offsets_now.in_store(self.namespace.wrap_queue(queue))
        if offset == OFFSET_UNREADABLE:
            raise ClientError(f"Fetch consume offset from broker exception: {queue}")
        return offset if offset >= 0 else None

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Store the group's offset, the next message to read, and wait until the broker knows."""
        if offset < 0:
            raise ClientError("offset < 0")
        await self._offsets_now.commit(self.namespace.wrap_queue(queue), offset)

    async def explain(self, topic: str) -> list[Verdict]:
        """Where the group would start in each queue of the topic, and which rule decides (PocketMQ brokers only)."""
        instance, topic = self._usable, self.namespace.wrap(topic)
        address = await instance.routes.find_any_broker(topic, main_port=True)
        request = ExplainFirstPosition(consumer_group=self._group, topic=topic)
        return await instance.connections.call(address, request)

    @property
    def _api_now(self) -> PullApi:
        self._usable  # noqa: B018  # raises unless started, and elsewhere
        return self._api

    @property
    def _offsets_now(self) -> RemoteBrokerOffsetStore:
        self._usable  # noqa: B018
        return self._offsets
