"""Questions about the offsets of a queue, answered by the master of its broker; and the clients that ask nothing else
of their instance.

Mirrors the offset calls of `MQAdminImpl`.
"""

import asyncio
from typing import Final, TypeVar

from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.offset import (
    GetEarliestMsgStoreTime,
    GetMaxOffset,
    GetMinOffset,
    SearchOffsetByTimestamp,
)
from pocketmq.protocol.wire.schema import Reply, Request

from ..arguments import checks_arguments
from ..errors import CallTimeout, ClientError
from ..instance.client import Client
from ..instance.instance import ClientInstance

TIMEOUT_SECONDS: Final = 6.0

ReplyT = TypeVar("ReplyT", bound=Reply)


async def max_offset(instance: ClientInstance, queue: MessageQueue) -> int:
    """One past the last message. `RequestRefused`, `NotReachable` or `RouteNotFound`, as the others."""
    request = GetMaxOffset(topic=queue.topic, queue_id=queue.queue_id, broker_name=queue.broker_name)
    return (await _ask(instance, queue, request)).offset


async def min_offset(instance: ClientInstance, queue: MessageQueue) -> int:
    """The first message that is still stored."""
    request = GetMinOffset(topic=queue.topic, queue_id=queue.queue_id, broker_name=queue.broker_name)
    return (await _ask(instance, queue, request)).offset


async def search_offset(instance: ClientInstance, queue: MessageQueue, timestamp_ms: int) -> int:
    """The first message stored at or after a time, the end if there is none (4.9 brokers: the nearest)."""
    request = SearchOffsetByTimestamp(
        topic=queue.topic,
        queue_id=queue.queue_id,
        timestamp=timestamp_ms,
        boundary_type="LOWER",
        broker_name=queue.broker_name,
    )
    return (await _ask(instance, queue, request)).offset


async def _ask(instance: ClientInstance, queue: MessageQueue, request: Request[ReplyT]) -> ReplyT:
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            address = await instance.routes.find_master(queue)
            return await instance.connections.call(address, request, timeout_seconds=TIMEOUT_SECONDS)
    except TimeoutError as error:
        if isinstance(error, ClientError):
            raise
        raise CallTimeout(f"{request.name} of {queue} took more than {TIMEOUT_SECONDS:g} s") from None


@checks_arguments
class QueueReader(Client):
    """A client that is in no group: it holds the instance, whose other clients may come and go, and sends nothing
    before its first call."""

    async def queues(self, topic: str) -> list[MessageQueue]:
        """Readable queues of a topic, sorted (official fetchSubscribeMessageQueues); `RouteNotFound` if it has none."""
        route = await self._require_running().routes.find_route(self._namespace.wrap(topic))
        return [self._namespace.unwrap_queue(queue) for queue in route.read_queues()]

    async def max_offset(self, queue: MessageQueue) -> int:
        """One past the last message (official maxOffset). `RequestRefused`, `NotReachable` or `RouteNotFound`."""
        return await max_offset(self._require_running(), self._namespace.wrap_queue(queue))

    async def min_offset(self, queue: MessageQueue) -> int:
        """The first message that is still stored (official minOffset)."""
        return await min_offset(self._require_running(), self._namespace.wrap_queue(queue))

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The first message stored at or after a time, the end if there is none (official searchOffset)."""
        return await search_offset(self._require_running(), self._namespace.wrap_queue(queue), timestamp_ms)

    async def earliest_store_time(self, queue: MessageQueue) -> int:
        """When the oldest message was stored, epoch ms; -1 for an empty queue (official earliestMsgStoreTime)."""
        queue = self._namespace.wrap_queue(queue)
        request = GetEarliestMsgStoreTime(
            topic=queue.topic, queue_id=queue.queue_id, broker_name=queue.broker_name
        )
        return (await _ask(self._require_running(), queue, request)).timestamp
