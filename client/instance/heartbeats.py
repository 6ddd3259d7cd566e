"""Heartbeats of one client instance: its groups and their subscriptions, sent to every broker.

With `use_heartbeat_v2` (5.x, off by default as in Java) a broker that remembers the fingerprint of our subscriptions
gets the heartbeat without them. Heartbeats to one broker follow one another, and none waits for another broker: a dead
one would make the others believe that this client is gone. Nor does a caller wait long for a dead broker once another
has answered. Mirrors the heartbeat part of `MQClientInstance`.
"""

import asyncio
import itertools
import logging
from collections import defaultdict
from typing import Any, Final

import msgspec
from pocketmq.protocol.bodies.client import HeartbeatData, ProducerData
from pocketmq.protocol.requests.membership import HeartBeat, HeartBeatReply

from ..connections.pool import ConnectionPool
from ..errors import ClientError
from ..tasks import Tasks
from .groups import INNER_PRODUCER_GROUP, GroupTable
from .route_book import BrokerAddresses

_log = logging.getLogger(__name__)

GRACE_SECONDS: Final = 0.2
"""How long `send` waits for the other brokers once one has accepted a heartbeat."""


class Heartbeats:
    """`send` to all brokers, `send_to` one. Failures are logged; the next heartbeat follows soon."""

    def __init__(
        self,
        client_id: str,
        groups: GroupTable,
        brokers: BrokerAddresses,
        connections: ConnectionPool,
        *,
        timeout_seconds: float,
        use_v2: bool = False,
    ) -> None:
        self._client_id = client_id
        self._groups = groups
        self._brokers = brokers
        self._connections = connections
        self._timeout_seconds = timeout_seconds
        self._use_v2 = use_v2
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._numbers = itertools.count(1)
        self._last: dict[str, tuple[int, bool]] = {}
        """By address, the last heartbeat that ended: its number, and whether it was accepted."""
        self._under_way: dict[asyncio.Future[None], str] = {}
        """The addresses that heartbeats are under way to."""
        self._tasks = Tasks()
        self._v2_brokers: set[str] = set()
        self._fingerprints: dict[str, int] = {}

    def is_under_way(self, address: str) -> bool:
        return address in self._under_way.values()

    async def settled(self, address: str) -> None:
        """Return once the heartbeat to a broker that is under way now has ended; it ends within its timeout."""
        under_way = [ended for ended, target in self._under_way.items() if target == address]
        if under_way:
            await asyncio.wait(under_way)

    def forget_fingerprints(self) -> None:
        """The next heartbeats carry the subscriptions again."""
        self._fingerprints.clear()

    def data(self) -> HeartbeatData:
        """The heartbeat as of now, in its full form."""
        producers = self._groups.producers
        return HeartbeatData(
            client_id=self._client_id,
            producer_data_set=[
                ProducerData(group_name=group) for group in dict.fromkeys((INNER_PRODUCER_GROUP, *producers))
            ],
            consumer_data_set=[consumer.consumer_data() for consumer in self._groups.consumers.values()],
        )

    async def send(self) -> bool:
        """One heartbeat to every broker; True as soon as a broker accepted it and the others had `GRACE_SECONDS` more.

        Those that take longer go on in the background.
        """
        targets = self._brokers.heartbeat_targets(with_slaves=bool(self._groups.consumers))
        for address in self._last.keys() - targets:
            del self._last[address]
            self._turns.pop(address, None)
        if not targets or not self._groups:
            return False
        accepted: list[str] = []

        async def beat(address: str) -> None:
            if await self.send_to(address):
                accepted.append(address)

        waiting = {self._tasks.spawn(beat(address), f"heartbeat to {address}") for address in targets}
        while waiting and not accepted:
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if waiting:
            await asyncio.wait(waiting, timeout=GRACE_SECONDS)
        return bool(accepted)

    def close(self) -> set[asyncio.Task[Any]]:
        """End the heartbeats under way, and return their tasks."""
        return {*self._tasks.cancel()}

    async def send_to(self, address: str) -> bool:
        """One heartbeat to one broker; False if it was not accepted.

        A caller that waited for a heartbeat under way, while another began and ended, shares that one.
        """
        asked = next(self._numbers)
        async with self._turns[address]:
            number, accepted = self._last.get(address, (0, False))
            if number < asked:
                number = next(self._numbers)
                accepted = await self._send_now(address)
                self._last[address] = number, accepted
        return accepted

    async def _send_now(self, address: str) -> bool:
        data = self.data()
        fingerprint = 0
        if self._use_v2:
            fingerprint = data.fingerprint()
            is_known = address in self._v2_brokers and self._fingerprints.get(address) == fingerprint
            consumers = data.consumer_data_set
            if is_known:
                consumers = [msgspec.structs.replace(one, subscription_data_set=[]) for one in consumers]
            data = msgspec.structs.replace(
                data, consumer_data_set=consumers, heartbeat_fingerprint=fingerprint, without_sub=is_known
            )
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._under_way[ended] = address
        try:
            reply: HeartBeatReply = await self._connections.call(
                address, HeartBeat(), data.encode(), timeout_seconds=self._timeout_seconds
            )
        except ClientError as error:
            _log.warning("heartbeat to %s: %s", address, error)
            return False
        finally:
            del self._under_way[ended]
            ended.set_result(None)
        if self._use_v2 and reply.is_support_heart_beat_v2:
            self._v2_brokers.add(address)
            if reply.is_sub_change:
                self._fingerprints.pop(address, None)
            else:
                self._fingerprints[address] = fingerprint
        return True
