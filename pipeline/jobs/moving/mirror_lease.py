"""The lease of a mirror: it locks the queues that it reads, so two mirrors of one name never copy the same messages.

The locks are those of ordered consumers, at the brokers of the source, for group `pocketmq-mirror-NAME`. A broker gives
a queue to one owner, and to another 60 s after the lock was renewed last.

    renewed   +10 s                    +30 s                      +60 s
       |---------|--- renews, sends -----|--- locks anew, looks -----|   another can have the lock

A mirror checks its lock before each request, so one that was paused, or that its source does not answer, sends nothing
more: what it has sent ends within 10 s, before another can begin. A lock that is had anew says nothing of the time
before: the mirror looks in the target for copies of another before it sends (`mirror_recovery.py`).

Brokers store whatever reaches them. So a process that is paused between the check and its request, or a network that
holds a request back for longer than the lock lasts, can still add copies. A broker keeps its locks in memory, and a
slave has its own: after a restart, or a change of the master, the first who asks has them.
"""

import asyncio
import os
import socket
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Final

import msgspec
from pocketmq.client.clock import steady_ms
from pocketmq.client.connections.connection import Connection
from pocketmq.client.errors import ClientError
from pocketmq.protocol.bodies.client import (
    HeartbeatData,
    LockBatchRequestBody,
    ProducerData,
    UnlockBatchRequestBody,
)
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.membership import (
    GetProducerConnectionList,
    HeartBeat,
    LockBatchMq,
    UnlockBatchMq,
)

from ...errors import PipelineError, SourceUnreachable
from ...tables.brokers.broker_client import BrokerClient, gather_all
from ...tables.planning.positions import Queue
from .mirror_positions import SOURCE, SideUnreachable, asking

RENEW_SECONDS: Final = 10.0
SURE_SECONDS: Final = 30.0
LOCK_SECONDS: Final = 60.0
"""How long a broker keeps a lock that is not renewed."""
PAUSE_SECONDS: Final = 1.0
"""Between two looks whether a lock must be renewed."""
ANSWER_MS: Final = 2_000


class LeaseLost(PipelineError):
    """Another mirror of this name has the lease, or may have had it."""


class _Held(msgspec.Struct, frozen=True):
    """Queues of one broker that are locked, and the connection and the moment (`steady_ms`) at which they were."""

    queues: frozenset[Queue]
    connection: Connection
    locked_at_ms: int

    @property
    def age_seconds(self) -> float:
        return (steady_ms() - self.locked_at_ms) / 1000

    def is_sure(self) -> bool:
        """Whether no other can have them. A broker that restarted closed the connection, and has no locks."""
        return not self.connection.closed and self.age_seconds <= SURE_SECONDS


class MirrorLease:
    """The lease of one mirror. `owner` names it to the brokers: no other mirror that runs may have that name."""

    def __init__(self, source: BrokerClient, group: str, owner: str) -> None:
        self._source = source
        self._group = group
        host = socket.gethostname()
        self._owner = f"{host}#{owner}"
        self._client_id = f"{host}@{os.getpid()}#{owner}"
        self._held: dict[str, _Held] = {}

    def is_sure(self, broker_name: str) -> bool:
        """Whether no other can have queues of this broker."""
        held = self._held.get(broker_name)
        return held is not None and held.is_sure()

    def take(self, queues: Iterable[Queue]) -> tuple[set[Queue], dict[str, PipelineError]]:
        """Lock these queues, or renew their locks: the queues that are locked anew, and the brokers that do not answer.

        `LeaseLost` if another mirror has one of them; what was locked anew is given back.
        """
        of_brokers: dict[str, set[Queue]] = defaultdict(set)
        for queue in queues:
            of_brokers[queue.broker_name].add(queue)
        return self._source.run(self._take(of_brokers))

    async def _take(
        self, of_brokers: Mapping[str, set[Queue]]
    ) -> tuple[set[Queue], dict[str, PipelineError]]:
        new: set[Queue] = set()
        refused: set[Queue] = set()
        away: dict[str, PipelineError] = {}

        async def take(broker_name: str, queues: set[Queue]) -> None:
            held = await self._surely_held(min(queues))
            before = frozenset() if held is None else held.queues
            if held is not None and queues <= before and held.age_seconds <= RENEW_SECONDS:
                return
            try:
                refused.update(await self._lock(queues))
                new.update(queues - before)
            except SideUnreachable as error:
                away[broker_name] = error.error

        await gather_all(take(*one) for one in of_brokers.items())
        if refused:
            self._release(new - refused)
            raise await self._lost(min(refused))
        return new, away

    async def _surely_held(self, queue: Queue) -> _Held | None:
        """What is held at the broker of a queue; None if another may have had it."""
        held = self._held.get(queue.broker_name)
        with suppress(ClientError):  # then the request to lock says what is wrong
            connection = await self._source.broker(queue.topic, queue.broker_name)
            if held is not None and held.connection is connection and held.is_sure():
                return held
        return None

    def check(self, queue: Queue) -> None:
        """Return if no other can have the queue while one more request is under way. `LeaseLost` if another has it,
        `SideUnreachable` if its lock could not be renewed."""
        held = self._held[queue.broker_name]
        if queue not in held.queues:
            raise LeaseLost(f"{queue} belongs to another {self._group}")
        if not held.is_sure():
            raise SideUnreachable(SOURCE, SourceUnreachable(f"the lock of {queue} was not renewed in time"))

    async def keep(self) -> None:
        """Renew the locks while they are sure, until cancelled."""
        while True:
            await self.renew()
            await asyncio.sleep(PAUSE_SECONDS)

    async def renew(self) -> None:
        """Renew the locks that are sure, and older than `RENEW_SECONDS`, of the brokers that answer."""

        async def renew(held: _Held) -> None:
            if held.queues and held.is_sure() and held.age_seconds > RENEW_SECONDS:
                with suppress(SideUnreachable):
                    await self._lock(held.queues)

        await gather_all(renew(held) for held in list(self._held.values()))

    async def _lock(self, queues: Collection[Queue]) -> set[Queue]:
        """Lock queues of one broker, or renew their locks; the queues that another has."""
        some = min(queues)

        async def ask(fresh: bool) -> set[Queue]:
            connection = await self._source.broker(some.topic, some.broker_name, fresh=fresh)
            locked_at_ms = steady_ms()
            reply = await connection.call(LockBatchMq(), self._body(LockBatchRequestBody, queues))
            known = {(each.topic, each.queue_id) for each in reply.lock_ok_mq_set}
            ours = frozenset(queue for queue in queues if (queue.topic, queue.queue_id) in known)
            self._held[some.broker_name] = _Held(ours, connection, locked_at_ms)
            if ours:  # so that the broker can say who has them
                producer = ProducerData(group_name=self._group)
                heartbeat = HeartbeatData(client_id=self._client_id, producer_data_set=[producer])
                connection.notify(HeartBeat(), heartbeat.encode())
            return set(queues) - ours

        with asking(SOURCE):
            return await self._source.with_retries(f"lock of {some}", ask, ANSWER_MS)

    async def _lost(self, queue: Queue) -> LeaseLost:
        """The error that says who has the queue."""
        others: list[str] = []
        with suppress(ClientError):
            connection = await self._source.broker(queue.topic, queue.broker_name)
            reply = await connection.call(GetProducerConnectionList(producer_group=self._group))
            others = sorted(
                f"{one.client_id} at {one.client_addr}"
                for one in reply.connection_set
                if one.client_id != self._client_id
            )
        who = " and ".join(others) or "one that the broker does not name"
        return LeaseLost(
            f"{queue} belongs to another {self._group}: {who}; end that one, or choose another --name. "
            f"The lease of one that was killed ends after {LOCK_SECONDS:g} s"
        )

    def release(self) -> None:
        """Give all locks back, as far as brokers can be reached."""
        self._release({queue for held in self._held.values() for queue in held.queues})

    def _release(self, queues: set[Queue]) -> None:
        for broker_name, held in self._held.items():
            ours = held.queues & queues
            if ours:
                held.connection.notify(UnlockBatchMq(), self._body(UnlockBatchRequestBody, ours).encode())
                self._held[broker_name] = msgspec.structs.replace(held, queues=held.queues - ours)

    def _body(self, kind: type[LockBatchRequestBody], queues: Iterable[Queue]) -> LockBatchRequestBody:
        return kind(
            consumer_group=self._group,
            client_id=self._owner,
            mq_set=[MessageQueue(each.topic, each.broker_name, each.queue_id) for each in sorted(queues)],
        )
