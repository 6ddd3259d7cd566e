"""Questions about the offsets of a queue, answered by the master of its broker.

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

from ..errors import CallTimeout, ClientError
from ..instance.instance import ClientInstance

TIMEOUT_SECONDS: Final = 6.0

ReplyT = TypeVar("ReplyT", bound=Reply)


class OffsetQuestions:
    """Each raises `RequestRefused`, `NotReachable` or `RouteNotFound`."""

    def __init__(self, instance: ClientInstance) -> None:
        self._instance = instance

    async def max_offset(self, queue: MessageQueue) -> int:
        """One past the last message."""
        request = GetMaxOffset(topic=queue.topic, queue_id=queue.queue_id, broker_name=queue.broker_name)
        return (await self._ask(queue, request)).offset

    async def min_offset(self, queue: MessageQueue) -> int:
        """The first message that is still stored."""
        request = GetMinOffset(topic=queue.topic, queue_id=queue.queue_id, broker_name=queue.broker_name)
        return (await self._ask(queue, request)).offset

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The first message stored at or after a time, the end if there is none (4.9 brokers: the nearest)."""
        request = SearchOffsetByTimestamp(
            topic=queue.topic,
            queue_id=queue.queue_id,
            timestamp=timestamp_ms,
            boundary_type="LOWER",
            broker_name=queue.broker_name,
        )
        return (await self._ask(queue, request)).offset

    async def earliest_store_time(self, queue: MessageQueue) -> int:
        """When the oldest message was stored, epoch ms; -1 for an empty queue."""
        request = GetEarliestMsgStoreTime(
            topic=queue.topic, queue_id=queue.queue_id, broker_name=queue.broker_name
        )
        return (await self._ask(queue, request)).timestamp

    async def _ask(self, queue: MessageQueue, request: Request[ReplyT]) -> ReplyT:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                address = await self._instance.routes.find_master(queue)
                return await self._instance.connections.call(
                    address, request, timeout_seconds=TIMEOUT_SECONDS
                )
        except TimeoutError as error:
            if isinstance(error, ClientError):
                raise
            raise CallTimeout(f"{request.name} of {queue} took more than {TIMEOUT_SECONDS:g} s") from None
