"""Offsets of a clustering group: kept in memory, persisted at the master of each queue.

Official class: RemoteBrokerOffsetStore.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable

from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.offset import QueryConsumerOffset
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..errors import ClientError, RequestRefused
from ..instance.instance import ClientInstance
from .offset_memory import NO_OFFSET, OFFSET_UNREADABLE, OffsetMemory
from .offset_reports import CALL_TIMEOUT_SECONDS, OffsetReports
from .offset_store import OffsetStore

_log = logging.getLogger(__name__)


class RemoteBrokerOffsetStore(OffsetMemory):
    """Regular reports are one-way: if one is lost, the next follows in 5 s.
    How they are sent is `offset_reports.py`."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        super().__init__()
        self._instance = instance
        self._group = group
        self._reports = OffsetReports(instance, group, self.read)

    async def load(self) -> None:
        """Nothing to load: the offset of a queue is read when it is assigned."""

    async def in_store(self, queue: MessageQueue) -> int:
        """As `stored`, remembered; OFFSET_UNREADABLE instead of an error."""
        try:
            offset = await self.stored(queue)
        except (ClientError, ProtocolError) as error:
            _log.warning("offset of %s in %s: %s", self._group, queue, error)
            return OFFSET_UNREADABLE
        if offset != NO_OFFSET:
            self.update(queue, offset)
        return offset

    async def stored(self, queue: MessageQueue) -> int:
        """Ask the master (after a route refresh, any member) of the queue's broker; NO_OFFSET if the group has none.

        RequestRefused, NotReachable, RouteNotFound.
        """
        request = QueryConsumerOffset(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            broker_name=queue.broker_name,
        )
        routes = self._instance.routes
        address = routes.master(queue.broker_name) or await routes.find_member(queue)
        try:
            reply = await self._instance.connections.call(
                address, request, timeout_seconds=CALL_TIMEOUT_SECONDS
            )
        except RequestRefused as refusal:
            if (
                refusal.code == ResponseCode.QUERY_NOT_FOUND
            ):  # any other refusal says nothing about the offset
                return NO_OFFSET
            raise
        return reply.offset

    async def persist(self, queue: MessageQueue) -> None:
        """Send the broker one queue's offset, if there is one, and wait for the answer: the queue's next owner asks for
        it."""
        await self._report(queue, waits=True)

    async def persist_all(self, queues: Iterable[MessageQueue]) -> None:
        """Send the brokers the offsets of these queues, changed or not; forget all other queues.

        No queues at all: nothing happens, as in Java.
        """
        by_broker: defaultdict[str, list[MessageQueue]] = defaultdict(list)
        for queue in self.to_persist(set(queues)):
            by_broker[queue.broker_name].append(queue)
        await asyncio.gather(
            *(self._report_to_one_broker(queues_of_one) for queues_of_one in by_broker.values())
        )

    async def persist_last(self, queues: Iterable[MessageQueue]) -> None:
        """As `persist_all`, and wait until the brokers know, at most 5 s: for a consumer that leaves its group."""
        last = self.to_persist(set(queues))
        try:
            async with asyncio.timeout(CALL_TIMEOUT_SECONDS):
                await asyncio.gather(*map(self.persist, last))
        except TimeoutError:
            _log.warning("the last offsets of %s are not persisted in time", self._group)

    def may_travel_with_pull(self, queue: MessageQueue) -> bool:
        """Whether a pull may carry the queue's offset. If not yet, the offset is sent the way first offsets are."""
        if self._reports.knows_topic(queue):
            return True
        if not self._reports.is_sending_first(queue):
            self._instance.spawn(self.persist(queue), f"first offset of {queue}")
        return False

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Send the broker an offset and wait for its answer."""
        self.update(queue, offset)
        await self._reports.send(queue, waits=True, offset=offset)

    async def _report_to_one_broker(self, queues: list[MessageQueue]) -> None:
        """One after the other; a broker that does not answer is left alone until the next report."""
        for queue in queues:
            if not await self._report(queue, waits=False):
                return

    async def _report(self, queue: MessageQueue, *, waits: bool) -> bool:
        """False if the broker cannot be reached."""
        if self.read(queue) == NO_OFFSET:
            return True
        try:
            await self._reports.send(queue, waits=waits)
        except ClientError as error:
            offset = self.read(queue)
            _log.warning("offset %d of %s in %s is not persisted: %s", offset, self._group, queue, error)
            return isinstance(error, RequestRefused)
        return True


def pull_may_carry(store: OffsetStore, queue: MessageQueue) -> bool:
    """Whether the broker may learn the queue's offset from a pull. A user's own store is not asked: as in Java its
    offsets travel with every pull."""
    return not isinstance(store, RemoteBrokerOffsetStore) or store.may_travel_with_pull(queue)
