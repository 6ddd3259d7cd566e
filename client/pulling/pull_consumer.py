"""A consumer that reads queues by offset; its user decides every position.

    async with PullConsumer("group") as consumer:
        for queue in await consumer.queues("Orders"):
            result = await consumer.pull(queue, await consumer.min_offset(queue))

No rebalance and no listener. Unlike the official class it does not join its group: tools do not list it among the
members, and the members share all queues without it. Mirrors `DefaultMQPullConsumer`.
"""

from collections.abc import Iterable
from typing import Final, Unpack

from pocketmq.protocol.message.flags import PULL_SUBSCRIPTION, PULL_SUSPEND
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.offset import ExplainFirstPosition, Verdict

from ..arguments import checks_arguments
from ..errors import InvalidArgument
from ..hooks.hooks import Hook
from ..instance.instance import ClientInstance
from ..instance.instance_config import settings_of
from ..offsets.broker_store import RemoteBrokerOffsetStore
from ..offsets.queue_offsets import QueueReader
from ..producing.producer import Producer
from ..rebalancing.subscriptions import subscription_of
from ..settings.client_settings import ClientSettings
from ..settings.keywords import ClientOptions
from ..values.results import PullResult
from ..values.validators import check_consumer_group
from .pull_api import SHORT_PULL_TIMEOUT_MS, PullApi, PullOrder

EXTRA_WAIT_MS: Final = 10_000
"""A broker looks at held pulls every 5 s, so an empty answer may arrive that much after `wait_ms`."""


@checks_arguments
class PullConsumer(QueueReader):
    """Use as `async with`, in one event loop. Settings are those of `ClientSettings`, as keyword arguments."""

    _display_name = "PullConsumer"
    _trace_kind = "CONSUME"

    def __init__(
        self,
        group: str,
        *,
        settings: ClientSettings | None = None,
        hooks: Iterable[Hook] = (),
        **options: Unpack[ClientOptions],
    ) -> None:
        check_consumer_group(group)
        super().__init__(group, settings_of(ClientSettings, settings, options), hooks, Producer)

    async def _build(self, instance: ClientInstance) -> None:
        self._api = PullApi(instance, self._group, self._hooks)
        self._offsets = RemoteBrokerOffsetStore(instance, self._group)

    # -- reading

    async def broker_address(self, queue: MessageQueue) -> str:
        """Where the queue's master listens, `host:port`; `RouteNotFound` if it has none."""
        return await self._require_running().routes.find_master(
            self._namespace.wrap_queue(queue), main_port=True
        )

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
        """Messages from `offset` on; with `wait_ms` the broker waits so long for the first (official
        pullBlockIfNotFound).

        An offset outside the queue is not an error: the status is OFFSET_ILLEGAL, and `next_offset` says where to
        continue. Raises `RequestRefused`, `NotReachable` or `RouteNotFound`. A broker that cannot be connected to is
        looked up again.
        """
        self._require_running()
        wrapped = self._namespace.wrap_queue(queue)
        if offset < 0:
            raise InvalidArgument("offset < 0")
        if max_count <= 0:
            raise InvalidArgument("maxNums <= 0")
        order = PullOrder(
            offset=offset,
            subscription=subscription_of(wrapped.topic, expression, expression_type),
            sys_flag=PULL_SUBSCRIPTION | (PULL_SUSPEND if wait_ms > 0 else 0),
            max_count=max_count,
            suspend_ms=wait_ms,
            timeout_ms=wait_ms + EXTRA_WAIT_MS if wait_ms > 0 else SHORT_PULL_TIMEOUT_MS,
        )
        result = await self._api.pull(wrapped, order)
        for message in result.messages:
            message.topic = self._namespace.unwrap(message.topic)
        return result

    # -- offsets

    async def committed(self, queue: MessageQueue) -> int | None:
        """The group's offset, as the broker answers (official fetchConsumeOffset); `None` if it has none. Errors as
        `max_offset`."""
        self._require_running()
        offset = await self._offsets.stored(self._namespace.wrap_queue(queue))
        return offset if offset >= 0 else None

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Store the group's offset, the next message to read, and wait until the broker knows."""
        if offset < 0:
            raise InvalidArgument("offset < 0")
        self._require_running()
        await self._offsets.commit(self._namespace.wrap_queue(queue), offset)

    async def lag(self, topic: str) -> dict[MessageQueue, int]:
        """Messages of each queue behind the group's offset, or behind the oldest one where it has none. Errors as
        `max_offset`."""
        behind = {}
        for queue in await self.queues(topic):
            position = await self.committed(queue)
            position = await self.min_offset(queue) if position is None else position
            behind[queue] = await self.max_offset(queue) - position
        return behind

    async def explain(self, topic: str) -> list[Verdict]:
        """Where the group would start in each queue of the topic, and which rule decides (PocketMQ brokers only)."""
        instance, topic = self._require_running(), self._namespace.wrap(topic)
        address = await instance.routes.find_any_broker(topic, main_port=True)
        request = ExplainFirstPosition(consumer_group=self._group, topic=topic)
        return await instance.connections.call(address, request)
