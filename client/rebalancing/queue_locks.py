"""Locks of queues at their brokers: an ordered consumer reads a queue only while it holds the queue's lock.

A broker keeps a lock for 60 s and the client trusts it for 30 s, so it is renewed every 20 s. Mirrors the lock part of
`RebalanceImpl`.
"""

import asyncio
import logging
from typing import Final

from pocketmq.protocol.bodies.client import LockBatchRequestBody, UnlockBatchRequestBody
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.membership import LockBatchMq, UnlockBatchMq

from ..errors import ClientError
from ..offsets.broker_store import by_broker
from ..settings.consumer_settings import PushConsumerSettings
from .consumer_context import ConsumerContext
from .process_queue import QueueTable

_log = logging.getLogger(__name__)

LOCK_INTERVAL_MS: Final = 20_000
FIRST_LOCK_ALL_DELAY_MS: Final = 1_000
TIMEOUT_SECONDS: Final = 1.0


class QueueLocks:
    """For one group. The process queues of `table` are marked as locked or not.

    A queue is locked before it is in the table, and stays locked after it was dropped while its listener runs.
    `_requested` holds every queue that a broker may have locked for us, from before the request until the unlock, as
    keys in the order asked for: a set's order would change from run to run.
    """

    def __init__(self, context: ConsumerContext[PushConsumerSettings], table: QueueTable) -> None:
        instance = context.instance
        self._routes, self._connections = instance.routes, instance.connections
        self._client_id = instance.client_id
        self._group = context.group
        self._table = table
        self._requested: dict[MessageQueue, None] = {}
        self._under_way: set[asyncio.Future[None]] = set()
        self._leaving = False

    async def lock(self, queue: MessageQueue) -> bool:
        """Ask the master for the lock of one queue; False if another member has it, the master does not answer, or this
        consumer leaves its group."""
        return queue in await self._lock(queue.broker_name, [queue])

    async def lock_all(self) -> None:
        """Renew the locks of every queue held, one request a broker. Without an answer they stay as they are."""
        held = by_broker(self._table.live())
        await asyncio.gather(*(self._lock(name, queues) for name, queues in held.items()))

    async def _lock(self, broker_name: str, queues: list[MessageQueue]) -> set[MessageQueue]:
        """The queues that are locked now; none if that is not known."""
        address = self._routes.master(broker_name)
        if address is None or self._leaving:
            return set()
        body = LockBatchRequestBody(consumer_group=self._group, client_id=self._client_id, mq_set=queues)
        self._requested.update(dict.fromkeys(queues))
        answered = asyncio.get_running_loop().create_future()
        self._under_way.add(answered)
        try:
            reply = await self._connections.call(
                address, LockBatchMq(), body, timeout_seconds=TIMEOUT_SECONDS
            )
        except (ClientError, ProtocolError) as error:
            _log.warning("locks of %s at %s: %s", self._group, broker_name, error)
            return set()
        finally:
            self._under_way.discard(answered)
            answered.set_result(None)
        locked = set(reply.lock_ok_mq_set)
        for queue in queues:
            if queue not in locked:
                self._requested.pop(queue, None)
            self._note(queue, queue in locked)
        return locked

    def _note(self, queue: MessageQueue, is_locked: bool) -> None:
        process_queue = self._table.get(queue)
        if process_queue is not None:
            process_queue.note_locked(is_locked)

    async def keep_locked(self) -> None:
        """`lock_all` after 1 s and every 20 s, until cancelled."""
        await asyncio.sleep(FIRST_LOCK_ALL_DELAY_MS / 1000)
        while True:
            await self.lock_all()
            await asyncio.sleep(LOCK_INTERVAL_MS / 1000)

    async def unlock(self, queue: MessageQueue) -> None:
        """Unlock one queue, without waiting for an answer."""
        address = self._routes.master(queue.broker_name, main_port=True)
        if address is None:
            return
        try:
            body = self._unlock_body([queue])
            await self._connections.notify(address, UnlockBatchMq(), body)
            self._requested.pop(queue, None)
        except ClientError as error:
            _log.warning("unlock of %s for %s: %s", queue, self._group, error)

    async def unlock_all(self) -> None:
        """Unlock every queue, also those a round asks for at this moment, and wait until the brokers know. No lock is
        asked for afterwards."""
        self._leaving = True
        if self._under_way:  # a broker may carry out what follows a request before it
            await asyncio.wait(self._under_way, timeout=TIMEOUT_SECONDS)
        requested = by_broker(self._requested)
        await asyncio.gather(*(self._unlock_at(name, queues) for name, queues in requested.items()))

    async def _unlock_at(self, broker_name: str, queues: list[MessageQueue]) -> None:
        address = self._routes.master(broker_name)
        if address is None:
            return
        body = self._unlock_body(queues)
        try:
            await self._connections.call(address, UnlockBatchMq(), body, timeout_seconds=TIMEOUT_SECONDS)
        except ClientError as error:
            _log.warning("unlock of %s at %s: %s", self._group, broker_name, error)
        for queue in queues:
            self._requested.pop(queue, None)
            self._note(queue, False)

    def give_back(self) -> None:
        """Unlock what is still locked, without waiting for connections or answers: for a consumer that was cancelled
        while it left. Without this the next owner would wait for the locks to expire."""
        self._leaving = True
        for broker_name, queues in by_broker(self._requested).items():
            address = self._routes.master(broker_name, main_port=True)
            connection = None if address is None else self._connections.live(address)
            if connection is not None:
                connection.notify(UnlockBatchMq(), self._unlock_body(queues))
        self._requested.clear()

    def _unlock_body(self, queues: list[MessageQueue]) -> bytes:
        return UnlockBatchRequestBody(
            consumer_group=self._group, client_id=self._client_id, mq_set=queues
        ).encode()
