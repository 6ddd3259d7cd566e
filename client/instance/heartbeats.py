"""Heartbeats of one client instance: who we are and what we subscribe to, told to every broker.

With `use_heartbeat_v2` (5.x, off by default as in Java) a broker that remembers our fingerprint gets the heartbeat
without subscriptions. Mirrors the heartbeat part of `MQClientInstance`.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

import msgspec
from pocketmq.protocol.bodies.client import HeartbeatData, ProducerData
from pocketmq.protocol.requests.membership import HeartBeat, HeartBeatReply

from ..errors import ClientError
from .groups import INNER_PRODUCER_GROUP

if TYPE_CHECKING:
    from .instance import ClientInstance

_log = logging.getLogger("pocketmq.client")


class Heartbeats:
    """`send` to all brokers, `send_to` one. Failures are logged: the next heartbeat is never far."""

    def __init__(self, instance: "ClientInstance", *, use_v2: bool, at_once: int = 1) -> None:
        self._instance = instance
        self._slots = asyncio.Semaphore(at_once)
        self._use_v2 = use_v2
        self._lock = asyncio.Lock()
        self._beating: dict[asyncio.Future[None], str] = {}
        """Heartbeats under way, with their addresses."""
        self._v2_brokers: set[str] = set()
        self._fingerprints: dict[str, int] = {}

    def is_beating(self, address: str) -> bool:
        """A heartbeat to that address is under way."""
        return address in self._beating.values()

    async def settled(self) -> None:
        """Return once every heartbeat that is under way now has ended; each does within its timeout."""
        if self._beating:
            await asyncio.wait(list(self._beating))

    def forget_fingerprints(self) -> None:
        """The next heartbeats carry everything."""
        self._fingerprints.clear()

    def data(self) -> HeartbeatData:
        """The heartbeat as of now, in its full form."""
        instance = self._instance
        groups = dict.fromkeys((INNER_PRODUCER_GROUP, *instance.producers))
        return HeartbeatData(
            client_id=instance.client_id,
            producer_data_set=[ProducerData(group_name=group) for group in groups],
            consumer_data_set=[consumer.consumer_data() for consumer in instance.consumers.values()],
        )

    async def send(self) -> bool:
        """One heartbeat to every broker; True where each took it, and there was one."""
        async with self._lock:
            instance = self._instance
            targets = instance.brokers.to_greet(with_slaves=bool(instance.consumers))
            if not targets or not (instance.consumers or instance.producers):
                return False
            return all(await asyncio.gather(*(self._send_in_turn(address) for address in targets)))

    async def _send_in_turn(self, address: str) -> bool:
        """One broker after the other, or as many at once as `enable_concurrent_heartbeat` allows."""
        async with self._slots:
            return await self.send_to(address)

    async def send_to(self, address: str) -> bool:
        """One heartbeat to one broker; False where it did not take it."""
        data = self.data()
        fingerprint = 0
        if self._use_v2:
            fingerprint = data.fingerprint()
            is_known = address in self._v2_brokers and self._fingerprints.get(address) == fingerprint
            data = _with_fingerprint(data, fingerprint, without_sub=is_known)
        ended = self._instance.loop.create_future()
        self._beating[ended] = address
        try:
            reply: HeartBeatReply = await self._instance.connections.call(
                address, HeartBeat(), data.encode(), timeout_seconds=self._instance.api_timeout_seconds
            )
        except ClientError as error:
            _log.warning("heartbeat to %s: %s", address, error)
            return False
        finally:
            del self._beating[ended]
            ended.set_result(None)
        if self._use_v2 and reply.is_support_heart_beat_v2:
            self._v2_brokers.add(address)
            if reply.is_sub_change:
                self._fingerprints.pop(address, None)
            else:
                self._fingerprints[address] = fingerprint
        return True


def _with_fingerprint(data: HeartbeatData, fingerprint: int, *, without_sub: bool) -> HeartbeatData:
    consumers = data.consumer_data_set
    if without_sub:
        consumers = [msgspec.structs.replace(consumer, subscription_data_set=[]) for consumer in consumers]
    return msgspec.structs.replace(
        data, consumer_data_set=consumers, heartbeat_fingerprint=fingerprint, without_sub=without_sub
    )
