"""How the offsets of a group are sent to the brokers: the first of a topic on its own, the others as they come.

    first of a topic   request -> answer      other offsets of the topic wait meanwhile
    then               one-way requests, pulls that carry the offset; with `waits` a request and its answer

Official brokers create the table of a topic@group with its first offset, without a lock: of two first offsets that
arrive together, one can be lost (ConsumerOffsetManager.commitOffset). Which topics a broker knows is remembered for one
connection only: the next connection may lead to a broker that lost its table. Official clients send every offset
one-way, so they lose one now and then.
"""

import asyncio
import weakref
from collections.abc import Callable
from typing import Final

from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.offset import UpdateConsumerOffset

from ..connections.connection import Connection
from ..instance.instance import ClientInstance
from .offset_memory import NO_OFFSET

CALL_TIMEOUT_SECONDS: Final = 5.0


class OffsetReports:
    """Of one group. `offset_of` reads a queue's offset from memory; NO_OFFSET if it has none."""

    def __init__(
        self, instance: ClientInstance, group: str, offset_of: Callable[[MessageQueue], int]
    ) -> None:
        self._routes, self._connections = instance.routes, instance.connections
        self._group = group
        self._offset_of = offset_of
        self._known_topics: weakref.WeakKeyDictionary[Connection, set[str]] = weakref.WeakKeyDictionary()
        self._first: dict[tuple[str, str], asyncio.Lock] = {}
        """By broker name and topic: held while the first offset is under way."""

    def knows_topic(self, queue: MessageQueue) -> bool:
        """Whether the broker has the table of the queue's topic: then pulls may carry the offset."""
        address = self._routes.member(queue.broker_name)
        connection = None if address is None else self._connections.live(address)
        return connection is not None and queue.topic in self._known_topics.get(connection, ())

    def is_sending_first(self, queue: MessageQueue) -> bool:
        """Whether the topic's first offset is under way."""
        lock = self._first.get((queue.broker_name, queue.topic))
        return lock is not None and lock.locked()

    async def send(self, queue: MessageQueue, *, waits: bool, offset: int | None = None) -> None:
        """Send the master this offset, or the one in memory when the request is sent; `waits` for the answer.

        RequestRefused, NotReachable, RouteNotFound: the broker may know it nevertheless.
        """
        address = await self._routes.find_member(queue)
        connection = await self._connections.get(address)
        if queue.topic not in self._known_topics.get(connection, ()):
            async with self._first.setdefault((queue.broker_name, queue.topic), asyncio.Lock()):
                connection = await self._connections.get(address)
                if queue.topic not in self._known_topics.get(connection, ()):
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
        if request is None:
            return False
        await self._connections.call(address, request, timeout_seconds=CALL_TIMEOUT_SECONDS)
        return True

    def _request(self, queue: MessageQueue, offset: int | None) -> UpdateConsumerOffset | None:
        if offset is None:
            # Only now: while this call waited, the offset may have moved, or the queue went to another member.
            offset = self._offset_of(queue)
            if offset == NO_OFFSET:
                return None
        return UpdateConsumerOffset(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=offset,
            broker_name=queue.broker_name,
        )
