"""Offsets of a group, told to the brokers: the first of a topic alone, the others as they come.

    first of a topic   request -> answer      whoever has another offset of the topic waits meanwhile
    then               one-way requests, pulls that carry the offset; with `waits` a request and its answer

Official brokers make the table of a topic@group on its first offset, without a lock: of two first offsets that arrive
at the same moment one is lost (ConsumerOffsetManager.commitOffset). What a broker has been told counts for one
connection: behind the next one may be a broker that forgot it. Official clients send all of them one-way, hence lose
one now and then.
"""

import asyncio
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.offset import UpdateConsumerOffset

from ..connections.connection import Connection
from .offset_memory import NO_OFFSET

if TYPE_CHECKING:
    from ..instance.instance import ClientInstance

CALL_TIMEOUT_SECONDS: Final = 5.0


class OffsetReports:
    """Of one group. `offset_of` is what memory holds of a queue at this moment, NO_OFFSET for nothing."""

    def __init__(
        self, instance: "ClientInstance", group: str, offset_of: Callable[[MessageQueue], int]
    ) -> None:
        self._instance = instance
        self._group = group
        self._offset_of = offset_of
        self._told: weakref.WeakKeyDictionary[Connection, set[str]] = weakref.WeakKeyDictionary()
        self._first: dict[tuple[str, str], asyncio.Lock] = {}
        """By broker name and topic: held while the first offset is under way."""

    def is_told(self, queue: MessageQueue) -> bool:
        """Whether the broker has the topic's table: pulls may carry the offset."""
        address = self._instance.routes.member(queue.broker_name)
        connection = None if address is None else self._instance.connections.live(address)
        return connection is not None and queue.topic in self._told.get(connection, ())

    def is_telling(self, queue: MessageQueue) -> bool:
        """Whether the topic's first offset is under way."""
        lock = self._first.get((queue.broker_name, queue.topic))
        return lock is not None and lock.locked()

    async def tell(self, queue: MessageQueue, *, waits: bool, offset: int | None = None) -> None:
        """Tell the master this offset, or the one memory holds when the request leaves; `waits` for the answer.

        RequestRefused, NotReachable, RouteNotFound: the broker may know it nevertheless.
        """
        address = await self._instance.routes.find_member(queue)
        connection = await self._instance.connections.get(address)
        if queue.topic not in self._told.get(connection, ()):
            async with self._first.setdefault((queue.broker_name, queue.topic), asyncio.Lock()):
                connection = await self._instance.connections.get(address)
                if queue.topic not in self._told.get(connection, ()):
                    if await self._call(address, queue, offset):
                        self._told.setdefault(connection, set()).add(queue.topic)
                    return
        if waits:
            await self._call(address, queue, offset)
        elif (request := self._request(queue, offset)) is not None:
            connection.notify(request)

    async def _call(self, address: str, queue: MessageQueue, offset: int | None) -> bool:
        """False where there is nothing to tell any more."""
        request = self._request(queue, offset)
        if request is None:
            return False
        await self._instance.connections.call(address, request, timeout_seconds=CALL_TIMEOUT_SECONDS)
        return True

    def _request(self, queue: MessageQueue, offset: int | None) -> UpdateConsumerOffset | None:
        if offset is None:
            # Not before: while this one waited, the queue may have moved on, or gone to another member.
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
