"""Offsets of a clustering group: kept in memory, persisted at the master of each queue.

Official class: RemoteBrokerOffsetStore.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.offset import QueryConsumerOffset
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..errors import ClientError, RequestRefused
from .offset_memory import NO_OFFSET, OFFSET_UNREADABLE, OffsetMemory
from .offset_reports import CALL_TIMEOUT_SECONDS, OffsetReports

if TYPE_CHECKING:
    from ..instance.instance import ClientInstance

_log = logging.getLogger(__name__)


class RemoteBrokerOffsetStore(OffsetMemory):
    """Offsets of a group, kept by the master of each queue. Regular updates are one-way: a lost one comes again in
    5 s. How they are told, and why the first ones one by one, is `offset_reports.py`."""

    def __init__(self, instance: "ClientInstance", group: str) -> None:
        super().__init__()
        self._instance = instance
        self._group = group
        self._reports = OffsetReports(instance, group, self.read)

    async def load(self) -> None:
        """Nothing: each queue is asked for when it is assigned."""

    async def in_store(self, queue: MessageQueue) -> int:
        """Ask the master (after a route refresh, any member) of the queue's broker; success is remembered."""
        request = QueryConsumerOffset(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            broker_name=queue.broker_name,
        )
        try:
            routes = self._instance.routes
            address = routes.master(queue.broker_name) or await routes.find_member(queue)
            reply = await self._instance.connections.call(
                address, request, timeout_seconds=CALL_TIMEOUT_SECONDS
            )
        except RequestRefused as refusal:
            offset = stored_offset_of_refusal(refusal.code)
            if offset == OFFSET_UNREADABLE:
                _log.warning("offset of %s in %s: %s", self._group, queue, refusal)
            return offset
        except (ClientError, ProtocolError) as error:
            _log.warning("offset of %s in %s: %s", self._group, queue, error)
            return OFFSET_UNREADABLE
        self.update(queue, reply.offset)
        return reply.offset

    async def persist(self, queue: MessageQueue) -> None:
        """Tell the broker one queue's offset, if there is one, and wait until it knows: who takes the queue next
        asks for it."""
        await self._tell(queue, waits=True)

    async def persist_all(self, queues: Iterable[MessageQueue]) -> None:
        """Tell the brokers the offsets of these queues, changed or not; forget all other queues.

        No queues at all: nothing happens, as in Java.
        """
        by_broker: defaultdict[str, list[MessageQueue]] = defaultdict(list)
        for queue in self.to_persist(set(queues)):
            by_broker[queue.broker_name].append(queue)
        await asyncio.gather(*(self._tell_one_broker(some) for some in by_broker.values()))

    async def persist_last(self, queues: Iterable[MessageQueue]) -> None:
        """As `persist_all`, and wait until the brokers know, at most 5 s: for a consumer that leaves its group."""
        last = self.to_persist(set(queues))
        try:
            async with asyncio.timeout(CALL_TIMEOUT_SECONDS):
                await asyncio.gather(*map(self.persist, last))
        except TimeoutError:
            _log.warning("the last offsets of %s are not persisted in time", self._group)

    def may_ride(self, queue: MessageQueue) -> bool:
        """Whether a pull may carry the queue's offset. If not yet, the broker is told in the way first offsets are."""
        if self._reports.is_told(queue):
            return True
        if not self._reports.is_telling(queue):
            self._instance.spawn(self.persist(queue), f"first offset of {queue}")
        return False

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Tell the broker an offset and wait for its answer."""
        self.update(queue, offset)
        await self._reports.tell(queue, waits=True, offset=offset)

    async def _tell_one_broker(self, queues: list[MessageQueue]) -> None:
        """One after the other; a broker that does not answer is left alone until the next report."""
        for queue in queues:
            if not await self._tell(queue, waits=False):
                return

    async def _tell(self, queue: MessageQueue, *, waits: bool) -> bool:
        """False where the broker cannot be reached."""
        if self.read(queue) == NO_OFFSET:
            return True
        try:
            await self._reports.tell(queue, waits=waits)
        except ClientError as error:
            offset = self.read(queue)
            _log.warning("offset %d of %s in %s is not persisted: %s", offset, self._group, queue, error)
            return isinstance(error, RequestRefused)
        return True


def stored_offset_of_refusal(code: int) -> int:
    """What a refused QUERY_CONSUMER_OFFSET counts as: only "not found" means that there is none.

    No answer at all is OFFSET_UNREADABLE too. Official class: RemoteBrokerOffsetStore.readOffset.
    """
    return NO_OFFSET if code == ResponseCode.QUERY_NOT_FOUND else OFFSET_UNREADABLE
