"""Offsets of a clustering group: kept in memory, persisted at the master of each queue.

    first of a topic   request -> answer      other offsets of the topic wait meanwhile
    then               one-way requests, pulls that carry the offset; `persist` and `commit` wait for the answer

Official brokers create the table of a topic@group with its first offset, without a lock: of two first offsets that
arrive together, one can be lost (ConsumerOffsetManager.commitOffset). Which topics a broker knows is remembered for one
connection only: the next connection may lead to a broker that lost its table. Official clients send every offset
one-way, so they lose one now and then. Official class: RemoteBrokerOffsetStore.
"""

import asyncio
import logging
import weakref
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.offset import QueryConsumerOffset, UpdateConsumerOffset
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..connections.connection import Connection
from ..errors import ClientError, RequestRefused
from ..instance.instance import ClientInstance
from .offset_store import NO_OFFSET, OFFSET_UNREADABLE, OffsetMemory

_log = logging.getLogger(__name__)

CALL_TIMEOUT_SECONDS: Final = 5.0


class RemoteBrokerOffsetStore(OffsetMemory):
    """Regular reports are one-way: if one is lost, the next follows in 5 s."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        super().__init__()
        self._instance = instance
        self._routes, self._connections = instance.routes, instance.connections
        self._group = group
        self._known_topics: weakref.WeakKeyDictionary[Connection, set[str]] = weakref.WeakKeyDictionary()
        self._first: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        """By broker name and topic: held while the first offset is under way."""

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
        address = self._routes.master(queue.broker_name) or await self._routes.find_member(queue)
        try:
            reply = await self._connections.call(address, request, timeout_seconds=CALL_TIMEOUT_SECONDS)
        except RequestRefused as refusal:
            if refusal.code == ResponseCode.QUERY_NOT_FOUND:  # any other says nothing about the offset
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
        reported = by_broker(self.to_persist(set(queues)))
        await asyncio.gather(*map(self._report_to_one_broker, reported.values()))

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
        address = self._routes.member(queue.broker_name)
        connection = None if address is None else self._connections.live(address)
        if connection is not None and self._knows(connection, queue):
            return True
        if not self._first[queue.broker_name, queue.topic].locked():
            self._instance.spawn(self.persist(queue), f"first offset of {queue}")
        return False

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Send the broker an offset and wait for its answer."""
        self.update(queue, offset)
        await self._send(queue, waits=True, offset=offset)

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
            await self._send(queue, waits=waits)
        except ClientError as error:
            offset = self.read(queue)
            _log.warning("offset %d of %s in %s is not persisted: %s", offset, self._group, queue, error)
            return isinstance(error, RequestRefused)
        return True

    def _knows(self, connection: Connection, queue: MessageQueue) -> bool:
        """Whether the broker has the table of the queue's topic."""
        return queue.topic in self._known_topics.get(connection, ())

    async def _send(self, queue: MessageQueue, *, waits: bool, offset: int | None = None) -> None:
        """Send the master this offset, or the one in memory when the request is sent; `waits` for the answer.

        RequestRefused, NotReachable, RouteNotFound: the broker may know it nevertheless.
        """
        address = await self._routes.find_member(queue)
        connection = await self._connections.get(address)
        if not self._knows(connection, queue):
            async with self._first[queue.broker_name, queue.topic]:
                connection = await self._connections.get(address)
                if not self._knows(connection, queue):
                    if await self._call(address, queue, offset):
                        self._known_topics.setdefault(connection, set()).add(queue.topic)
                    return
        if waits:
            await self._call(address, queue, offset)
        elif (request := self._request(queue, offset)) is not None:
            connection.notify(request)

    async def _call(self, address: str, queue: MessageQueue, offset: int | None) -> bool:
        """False if there is no offset any more."""
        request = self._request(queue, offset)
        if request is not None:
            await self._connections.call(address, request, timeout_seconds=CALL_TIMEOUT_SECONDS)
        return request is not None

    def _request(self, queue: MessageQueue, offset: int | None) -> UpdateConsumerOffset | None:
        # Read only now: while this call waited, the offset may have moved, or the queue went to another member.
        offset = self.read(queue) if offset is None else offset
        if offset == NO_OFFSET:
            return None
        return UpdateConsumerOffset(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=offset,
            broker_name=queue.broker_name,
        )


def by_broker(queues: Iterable[MessageQueue]) -> dict[str, list[MessageQueue]]:
    """Queues by the name of their broker."""
    found: defaultdict[str, list[MessageQueue]] = defaultdict(list)
    for queue in queues:
        found[queue.broker_name].append(queue)
    return found
