"""Locks of queues at their brokers: an ordered consumer reads a queue only while it holds the queue's lock.

A broker keeps a lock for 60 s and the client trusts it for 30 s, so it is renewed every 20 s. Mirrors the lock part of
`RebalanceImpl`. Next: `send_back.py`.
"""

import asyncio
import logging
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from pocketmq.protocol.bodies_client import (
    LockBatchRequestBody,
    LockBatchResponseBody,
    UnlockBatchRequestBody,
)
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.membership_requests import LockBatchMq, UnlockBatchMq
from pocketmq.protocol.message_queue import MessageQueue

from .errors import ClientError
from .ordered_results import FIRST_LOCK_ALL_DELAY_MS, LOCK_TIMEOUT_MS
from .process_queue import LOCK_INTERVAL_MS
from .rebalancer import Queue

if TYPE_CHECKING:
    from .instance import ClientInstance

_log = logging.getLogger("pocketmq.client")

TIMEOUT_SECONDS: Final = LOCK_TIMEOUT_MS / 1000

Table = dict[MessageQueue, Queue]


class QueueLocks:
    """For one group. `table` is the rebalancer's: its states learn whether they are locked."""

    def __init__(self, instance: "ClientInstance", group: str, table: Table) -> None:
        self._instance = instance
        self._group = group
        self._table = table

    async def lock(self, queue: MessageQueue) -> bool:
        """Ask the master for the lock of one queue; False where it is another's or nobody answers."""
        address = self._instance.brokers.master(queue.broker_name)
        if address is None:
            return False
        try:
            held = await self._lock(address, [queue])
        except (ClientError, ProtocolError) as error:
            _log.warning("lock of %s for %s: %s", queue, self._group, error)
            return False
        for locked in held:
            state = self._table.get(locked)
            if state is not None:
                state.note_locked(True)
        return queue in held

    async def lock_all(self) -> None:
        """Renew the locks of every queue held, one request a broker; no answer leaves them as they are."""
        for broker_name, queues in self._by_broker().items():
            address = self._instance.brokers.master(broker_name)
            if address is None:
                continue
            try:
                held = await self._lock(address, queues)
            except (ClientError, ProtocolError) as error:
                _log.warning("locks of %s at %s: %s", self._group, broker_name, error)
                continue
            for queue in queues:
                state = self._table.get(queue)
                if state is not None:
                    state.note_locked(queue in held)

    async def keep_locked(self) -> None:
        """`lock_all` after 1 s and every 20 s, until cancelled."""
        await asyncio.sleep(FIRST_LOCK_ALL_DELAY_MS / 1000)
        while True:
            await self.lock_all()
            await asyncio.sleep(LOCK_INTERVAL_MS / 1000)

    async def unlock(self, queue: MessageQueue) -> None:
        """Give one lock back, without waiting for an answer."""
        address = self._instance.brokers.master(queue.broker_name)
        if address is None:
            return
        try:
            body = self._unlock_body([queue])
            await self._instance.connections.notify(address, UnlockBatchMq(), body)
        except ClientError as error:
            _log.warning("unlock of %s for %s: %s", queue, self._group, error)

    async def unlock_all(self) -> None:
        """Give every lock back and wait until the brokers know."""
        for broker_name, queues in self._by_broker().items():
            address = self._instance.brokers.master(broker_name)
            if address is None:
                continue
            try:
                await self._instance.connections.call_for_body(
                    self._instance.vip(address),
                    UnlockBatchMq(),
                    self._unlock_body(queues),
                    timeout_seconds=TIMEOUT_SECONDS,
                )
            except ClientError as error:
                _log.warning("unlock of %s at %s: %s", self._group, broker_name, error)
            for queue in queues:
                state = self._table.get(queue)
                if state is not None:
                    state.note_locked(False)

    def give_back(self) -> None:
        """Give back what is still locked, without waiting for connections or answers: for a consumer that was
        cancelled on its way out. Without this the next owner would wait for the locks to expire."""
        for broker_name, queues in self._by_broker().items():
            locked = [queue for queue in queues if self._table[queue].locked]
            address = self._instance.brokers.master(broker_name)
            connection = None if address is None else self._instance.connections.live(address)
            if locked and connection is not None:
                connection.notify(UnlockBatchMq(), self._unlock_body(locked))

    async def _lock(self, address: str, queues: list[MessageQueue]) -> set[MessageQueue]:
        body = LockBatchRequestBody(
            consumer_group=self._group, client_id=self._instance.client_id, mq_set=queues
        )
        answer = await self._instance.connections.call_for_body(
            self._instance.vip(address), LockBatchMq(), body.encode(), timeout_seconds=TIMEOUT_SECONDS
        )
        return set(LockBatchResponseBody.decode(answer).lock_ok_mq_set)

    def _unlock_body(self, queues: list[MessageQueue]) -> bytes:
        return UnlockBatchRequestBody(
            consumer_group=self._group, client_id=self._instance.client_id, mq_set=queues
        ).encode()

    def _by_broker(self) -> dict[str, list[MessageQueue]]:
        by_broker: defaultdict[str, list[MessageQueue]] = defaultdict(list)
        for queue, state in self._table.items():
            if not state.dropped:
                by_broker[queue.broker_name].append(queue)
        return by_broker
