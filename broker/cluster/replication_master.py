"""A master's side of replication: the HA port, its slaves, and the sends that wait for them.

    the slave's first report    where copying starts; each later one: the end of the slave's log
    new records                 in parts of haTransferBatchSize, as long as the slave's socket accepts them
    no new records              a heartbeat every haSendHeartbeatInterval
    no report                   for haHousekeepingInterval: the connection is closed

While no slave is connected, a send does nothing extra. With SYNC_MASTER the answer to a send waits for slaves: in the
4.9 line for one of them, in 5.x for inSyncReplicas - 1. `protocol/wire/ha_stream.py` has the bytes,
`replication_slave.py` the other side. Mirrors DefaultHAService, DefaultHAConnection and GroupTransferService.
"""

import asyncio
import logging
from socket import socket
from typing import Final, Literal, cast

from pocketmq.protocol.bodies.replication import HAConnectionRuntimeInfo
from pocketmq.protocol.wire.ha_stream import PART_HEAD, ReportReader
from pocketmq.store import PutStatus
from pocketmq.store.config import DEFAULT_HA_PORT

from ..config.broker_config import BrokerConfig
from ..errors import StartError
from ..network.listening import Descriptors, accept, bind_sockets, descriptor_of, port_of
from ..state.broker_state import BrokerState
from ..storing.log_waiters import LogWaiters

_log = logging.getLogger("pocketmq.cluster")

MAX_SLAVES: Final = 32
WATCH_SECONDS: Final = 0.5
BYTES_IN_AN_ITERATION: Final = 1 << 20
"""Copied to one slave in one loop iteration."""
UNREAD_BYTES: Final = 4 << 20
"""A slave that leaves more than this unread gets no more until it catches up."""
HA_PORT_IS_OPEN: Final = (
    "the HA port sends the whole log to each peer that reaches it, without TLS and access control, which are on; "
    f"set haListenPort to another port than {DEFAULT_HA_PORT} if you want that"
)


def promises_protection(config: BrokerConfig) -> bool:
    """Whether these settings let nobody read messages without a key, or without TLS."""
    return config.authentication_enabled or config.acl_enable or config.tls_server_mode == "enforcing"


async def bind_ha_port(config: BrokerConfig, host: str, listen_port: int) -> list[socket]:
    """Bind haListenPort, or the port after the listening port if it is not set. If that port is in use, any free one
    does: slaves learn it from the name servers. Raises `StartError` if a haListenPort that was set is in use."""
    wanted = config.store.ha_listen_port
    if wanted != DEFAULT_HA_PORT:
        return await bind_sockets(host, wanted, "haListenPort")
    try:
        return await bind_sockets(host, listen_port + 1, "haListenPort")
    except StartError:
        sockets = await bind_sockets(host, 0, "haListenPort")
    _log.info("port %d is in use: slaves connect to %d", listen_port + 1, port_of(sockets))
    return sockets


class ReplicationMaster:
    """`start` and `stop` mirror each other. A slave broker also listens: it can send the same log."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self.log = state.store.replication
        self._listeners: list[asyncio.Server] = []
        self._timer: asyncio.TimerHandle | None = None
        self.waiters = LogWaiters(self._find_replicated, lambda: state.config.store.slave_timeout)
        self._descriptors = Descriptors()
        self._is_scheduled = False
        self._is_guarded = (
            promises_protection(state.config) and state.config.store.ha_listen_port == DEFAULT_HA_PORT
        )
        """Whether slaves are refused, because the whole log would leave past access control and TLS."""
        self._has_said = False
        self.slaves: list[SlaveConnection] = []

    async def start(self, sockets: list[socket]) -> None:
        if promises_protection(self._state.config) and not self._is_guarded:
            _log.warning("slaves are accepted because haListenPort is set: %s", HA_PORT_IS_OPEN)
        await accept(lambda: SlaveConnection(self), sockets, self._listeners)
        self._timer = asyncio.get_running_loop().call_later(WATCH_SECONDS, self._watch)

    async def stop(self) -> None:
        """Close the connections of the slaves, and answer the sends that wait for them."""
        if self._timer is not None:
            self._timer.cancel()
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        for slave in list(self.slaves):
            slave.close()
        self.waiters.stop()

    # -- copying

    def add_slave(self, slave: "SlaveConnection", descriptor: int) -> bool:
        """Add a slave; False if the HA port is closed or guarded, or has too many slaves."""
        if not self._descriptors.has_room(descriptor, slave.peer, asyncio.get_running_loop().time()):
            return False
        if not self._listeners or len(self.slaves) >= MAX_SLAVES:
            return False
        if self._is_guarded:
            if not self._has_said:
                self._has_said = True
                _log.warning("refused %s: %s", slave.peer, HA_PORT_IS_OPEN)
            return False
        if not self.slaves:
            self._state.store.after_append.append(self._schedule_send)
        self.slaves.append(slave)
        return True

    def remove_slave(self, slave: "SlaveConnection") -> None:
        if slave in self.slaves:
            self.slaves.remove(slave)
            if not self.slaves:
                self._state.store.after_append.remove(self._schedule_send)

    def _schedule_send(self) -> None:
        """Send new records in the next loop iteration, all records of this iteration together."""
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._send_all)

    def _send_all(self) -> None:
        self._is_scheduled = False
        for slave in list(self.slaves):
            slave.send_more()

    def read(self, position: int) -> memoryview | None:
        return self.log.read(position, self._state.config.store.ha_transfer_batch_size)

    # -- waiting sends

    @property
    def copies(self) -> int:
        """How many brokers must have a message before it is answered, this one included."""
        if self._state.config.store.broker_role != "SYNC_MASTER":
            return 1
        return 2 if not self._state.config.is_5 else self._state.config.store.in_sync_replicas

    def refusal(self) -> Literal[PutStatus.SLAVE_NOT_AVAILABLE] | None:
        """The 4.9 line does not wait if every slave is too far behind; the message is stored nevertheless."""
        if self._state.config.is_5:
            return None
        behind = self._state.config.store.ha_slave_fallbehind_max
        if any(self.log.end - slave.acknowledged < behind for slave in self.slaves):
            return None
        return PutStatus.SLAVE_NOT_AVAILABLE

    def _find_replicated(self) -> int:
        """The log position up to which enough slaves have the log; -1 if too few slaves are connected."""
        needed = self.copies - 1
        reports = sorted((slave.acknowledged for slave in self.slaves), reverse=True)
        return reports[needed - 1] if 0 < needed <= len(reports) else -1

    # -- every half second

    def _watch(self) -> None:
        loop, config = asyncio.get_running_loop(), self._state.config.store
        for slave in list(self.slaves):
            slave.watch(loop.time(), config.ha_send_heartbeat_interval, config.ha_housekeeping_interval)
        self._timer = loop.call_later(WATCH_SECONDS, self._watch)

    def in_sync(self, slave: "SlaveConnection") -> bool:
        behind = self.log.end - slave.acknowledged
        return slave.acknowledged >= 0 and behind < self._state.config.store.ha_max_gap_not_in_sync


class SlaveConnection(asyncio.Protocol):
    """One slave. `acknowledged` is the end of its log by its last report, -1 before the first report and after one that
    cannot be true."""

    def __init__(self, master: ReplicationMaster) -> None:
        self._master = master
        self._reports = ReportReader()
        self._transport: asyncio.Transport | None = None
        self._position: int | None = None
        """The log position of the next part; `None` before the first report."""
        self._is_paused = False
        self._is_scheduled = False
        self._read_at = self._written_at = asyncio.get_running_loop().time()
        self._sent_bytes = self._sent_before = 0
        self._rate_since = self._written_at
        self._rate = 0
        self.acknowledged = -1
        self.peer = "?"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=UNREAD_BYTES)
        host, port = (transport.get_extra_info("peername") or ("?", 0))[:2]  # it may be gone already
        self.peer = f"{host}:{port}"
        if not self._master.add_slave(self, descriptor_of(transport)):
            self._transport.abort()
            return
        _log.info("slave %s connected", self.peer)

    def connection_lost(self, error: Exception | None) -> None:
        _log.info("lost the connection of slave %s: %s", self.peer, error or "closed")
        self._transport = None
        self._master.remove_slave(self)

    def data_received(self, data: bytes) -> None:
        reported = self._reports.feed(data)
        if reported is None:
            return
        self._read_at = asyncio.get_running_loop().time()
        is_first = self._position is None
        if self._position is None:
            self._position = self._master.log.first_position(reported)
        # No slave has what was not sent: a send must not be answered because one says so.
        is_true = reported <= min(self._position, self._master.log.end)
        self.acknowledged = reported if is_true else -1
        if is_first:
            _log.info("slave %s has the log up to %d: copying from %d", self.peer, reported, self._position)
            if reported > self._master.log.end:
                _log.error("slave %s is ahead of this log, which ends at %d", self.peer, self._master.log.end)
            self.send_more()
        self._master.waiters.look()  # a send may be replicated now

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self.send_more()

    def send_more(self) -> None:
        """Write parts until the log ends, the socket is full, or this slave had its share of the loop iteration."""
        transport, position = self._transport, self._position
        if transport is None or position is None or self._is_scheduled:
            return
        start, stop = position, position + BYTES_IN_AN_ITERATION
        while not self._is_paused and position < stop:
            part = self._master.read(position)
            if part is None:
                break
            transport.writelines((PART_HEAD.pack(position, len(part)), part))
            position += len(part)
        if position == start:
            return
        self._sent_bytes += position - start
        self._position = position
        self._written_at = asyncio.get_running_loop().time()
        if position >= stop and not self._is_paused:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._continue)

    def _continue(self) -> None:
        self._is_scheduled = False
        self.send_more()

    def watch(self, now: float, heartbeat_ms: int, housekeeping_ms: int) -> None:
        """Send a heartbeat if one is due; close the connection of a slave that sends none."""
        if self._transport is None:
            return
        if now - self._rate_since >= 1:
            self._rate = int((self._sent_bytes - self._sent_before) / (now - self._rate_since))
            self._sent_before, self._rate_since = self._sent_bytes, now
        if (now - self._read_at) * 1000 > housekeeping_ms:
            _log.warning(
                "slave %s sent nothing for %d ms: closing its connection", self.peer, housekeeping_ms
            )
            self._transport.abort()
        elif self._position is not None and (now - self._written_at) * 1000 > heartbeat_ms:
            self._transport.write(PART_HEAD.pack(self._position, 0))
            self._written_at = now

    def runtime_info(self) -> HAConnectionRuntimeInfo:
        """The entry of this slave in the answer to 907."""
        return HAConnectionRuntimeInfo(
            addr=self.peer,
            slave_ack_offset=self.acknowledged,
            diff=self._master.log.end - self.acknowledged,
            in_sync=self._master.in_sync(self),
            transferred_byte_in_second=self._rate,
            transfer_from_where=self._position if self._position is not None else -1,
        )

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
