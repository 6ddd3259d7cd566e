"""A master's side of replication: the HA port, the slaves on it, and the sends that wait for them.

    a slave's first number    where copying starts; each later one: its log has everything before this
    log to send               in parts of haTransferBatchSize, as long as the slave's socket takes them
    nothing to send           a heartbeat every haSendHeartbeatInterval
    a slave says nothing      for haHousekeepingInterval: its connection is closed

While no slave is connected a send does not notice any of this. With SYNC_MASTER the answer to a send waits for
slaves: in the 4.9 line for one of them, in 5.x for inSyncReplicas - 1. Mirrors DefaultHAService, DefaultHAConnection
and GroupTransferService. Bytes: `protocol/wire/ha_stream.py`.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from socket import socket
from typing import Final, Literal, cast

from pocketmq.protocol.bodies.replication import HAConnectionRuntimeInfo
from pocketmq.protocol.wire.ha_stream import ReportReader, encode_part_head
from pocketmq.store import PutStatus
from pocketmq.store.config import DEFAULT_HA_PORT

from ..config.broker_config import BrokerConfig
from ..errors import StartError
from ..network.listening import bind_sockets, port_of
from ..state.broker_state import BrokerState

_log = logging.getLogger("pocketmq.cluster")

MAX_SLAVES: Final = 32
BYTES_IN_AN_ITERATION: Final = 1 << 20
"""Copied to one slave before the loop goes on."""
UNREAD_BYTES: Final = 4 << 20
"""A slave that leaves more than this unread is not sent more until it catches up."""
WATCH_SECONDS: Final = 0.5

OnReplicated = Callable[[bool], None]


async def bind_ha_port(config: BrokerConfig, host: str, listen_port: int) -> list[socket]:
    """Take haListenPort, one above the listening port unless it is set; `StartError` where a set one is taken.
    Any other port would do as well: slaves ask the name servers for it."""
    loop, wanted = asyncio.get_running_loop(), config.store.ha_listen_port
    if wanted != DEFAULT_HA_PORT:
        return await bind_sockets(loop, host, wanted, "haListenPort")
    try:
        return await bind_sockets(loop, host, listen_port + 1, "haListenPort")
    except StartError:
        sockets = await bind_sockets(loop, host, 0, "haListenPort")
    _log.info("port %d is in use: slaves connect to %d", listen_port + 1, port_of(sockets))
    return sockets


class ReplicationMaster:
    """`start` and `stop` mirror each other; a slave broker listens, too, and has the same log to give."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._listeners: list[asyncio.Server] = []
        self._timer: asyncio.TimerHandle | None = None
        self._sends: deque[tuple[int, float, OnReplicated]] = deque()
        """(end of its record, deadline, callback) of each send that waits, in the order of the log."""
        self._is_scheduled = False
        self.slaves: list[SlaveConnection] = []

    async def start(self, sockets: list[socket]) -> None:
        """Accept slaves on the HA port."""
        loop = asyncio.get_running_loop()
        for bound in sockets:
            self._listeners.append(await loop.create_server(lambda: SlaveConnection(self), sock=bound))
        self._timer = loop.call_later(WATCH_SECONDS, self._watch)

    async def stop(self) -> None:
        """Let the slaves go, and answer the sends that wait for them."""
        if self._timer is not None:
            self._timer.cancel()
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        for slave in list(self.slaves):
            slave.close()
        while self._sends:
            self._sends.popleft()[2](False)

    # -- copying

    @property
    def log_end(self) -> int:
        return self._state.store.replication.end

    def connected(self, slave: "SlaveConnection") -> bool:
        """Takes a connection in, unless there are too many."""
        if not self._listeners or len(self.slaves) >= MAX_SLAVES:
            return False
        self.slaves.append(slave)
        self._state.store.on_append = self._appended
        return True

    def disconnected(self, slave: "SlaveConnection") -> None:
        if slave in self.slaves:
            self.slaves.remove(slave)
        if not self.slaves:
            self._state.store.on_append = None

    def _appended(self) -> None:
        """Send it in the next loop iteration, together with everything else appended in this one."""
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._send_all)

    def _send_all(self) -> None:
        self._is_scheduled = False
        for slave in list(self.slaves):
            slave.send_more()

    def first_position(self, reported: int) -> int:
        return self._state.store.replication.first_position(reported)

    def read(self, position: int) -> memoryview | None:
        return self._state.store.replication.read(position, self._state.config.store.ha_transfer_batch_size)

    # -- sends that wait

    @property
    def copies(self) -> int:
        """How many brokers must have a message before it is answered, this one included."""
        if self._state.config.store.broker_role != "SYNC_MASTER":
            return 1
        return 2 if not self._state.config.is_5 else self._state.config.store.in_sync_replicas

    def refusal(self) -> Literal[PutStatus.SLAVE_NOT_AVAILABLE] | None:
        """The 4.9 line does not wait where no slave could keep up; the message is stored all the same."""
        if self._state.config.is_5:
            return None
        behind = self._state.config.store.ha_slave_fallbehind_max
        if any(self.log_end - slave.acknowledged < behind for slave in self.slaves):
            return None
        return PutStatus.SLAVE_NOT_AVAILABLE

    @property
    def waiting_sends(self) -> int:
        return len(self._sends)

    def when_replicated(self, end: int, callback: OnReplicated) -> None:
        """Call back once enough slaves have the log up to `end` (True), or slaveTimeout is over (False)."""
        if self._acknowledged() >= end:
            callback(True)
            return
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._state.config.store.slave_timeout / 1000
        self._sends.append((end, deadline, callback))
        if len(self._sends) == 1:
            loop.call_at(deadline, self._give_up)

    def _acknowledged(self) -> int:
        """Up to where enough slaves have the log."""
        needed = self.copies - 1
        reports = sorted((slave.acknowledged for slave in self.slaves), reverse=True)
        return reports[needed - 1] if 0 < needed <= len(reports) else -1

    def reported(self) -> None:
        """A slave has said how far it is."""
        if self._sends:
            acknowledged = self._acknowledged()
            while self._sends and self._sends[0][0] <= acknowledged:
                self._sends.popleft()[2](True)

    def _give_up(self) -> None:
        loop = asyncio.get_running_loop()
        while self._sends and self._sends[0][1] <= loop.time():
            self._sends.popleft()[2](False)
        if self._sends:
            loop.call_at(self._sends[0][1], self._give_up)

    # -- every half a second

    def _watch(self) -> None:
        loop, config = asyncio.get_running_loop(), self._state.config.store
        for slave in list(self.slaves):
            slave.watch(loop.time(), config.ha_send_heartbeat_interval, config.ha_housekeeping_interval)
        self._timer = loop.call_later(WATCH_SECONDS, self._watch)

    def in_sync(self, slave: "SlaveConnection") -> bool:
        behind = self.log_end - slave.acknowledged
        return slave.acknowledged >= 0 and behind < self._state.config.store.ha_max_gap_not_in_sync


class SlaveConnection(asyncio.Protocol):
    """One slave. `acknowledged` is the end of its log as it last said, -1 before it said anything."""

    def __init__(self, master: ReplicationMaster) -> None:
        self._master = master
        self._reports = ReportReader()
        self._transport: asyncio.Transport | None = None
        self._position: int | None = None
        """Where the next part starts; None before the slave has said where."""
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
        host, port = transport.get_extra_info("peername")[:2]
        self.peer = f"{host}:{port}"
        if not self._master.connected(self):
            self._transport.abort()
            return
        _log.info("slave %s connected", self.peer)

    def connection_lost(self, error: Exception | None) -> None:
        _log.info("slave %s is gone: %s", self.peer, error or "closed")
        self._transport = None
        self._master.disconnected(self)

    def data_received(self, data: bytes) -> None:
        reported = self._reports.feed(data)
        if reported is None:
            return
        self._read_at = asyncio.get_running_loop().time()
        self.acknowledged = reported
        if self._position is None:
            self._position = self._master.first_position(reported)
            _log.info("slave %s has the log up to %d, copying from %d", self.peer, reported, self._position)
            if reported > self._master.log_end:
                _log.error("slave %s is ahead of this log, which ends at %d", self.peer, self._master.log_end)
            self.send_more()
        self._master.reported()

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self.send_more()

    def send_more(self) -> None:
        """Write parts until the log's end, the socket's, or the end of this slave's turn."""
        transport, position = self._transport, self._position
        if transport is None or position is None or self._is_scheduled:
            return
        start, stop = position, position + BYTES_IN_AN_ITERATION
        while not self._is_paused and position < stop:
            part = self._master.read(position)
            if part is None:
                break
            transport.writelines((encode_part_head(position, len(part)), part))
            position += len(part)
        if position == start:
            return
        self._sent_bytes += position - start
        self._position = position
        self._written_at = asyncio.get_running_loop().time()
        if position >= stop and not self._is_paused:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._is_scheduled = False
        self.send_more()

    def watch(self, now: float, heartbeat_ms: int, housekeeping_ms: int) -> None:
        """A heartbeat if one is due; ends the connection of a slave without heartbeat."""
        if self._transport is None:
            return
        if now - self._rate_since >= 1:
            self._rate = int((self._sent_bytes - self._sent_before) / (now - self._rate_since))
            self._sent_before, self._rate_since = self._sent_bytes, now
        if (now - self._read_at) * 1000 > housekeeping_ms:
            _log.warning("slave %s said nothing for %d ms: closing", self.peer, housekeeping_ms)
            self._transport.abort()
        elif self._position is not None and (now - self._written_at) * 1000 > heartbeat_ms:
            self._transport.write(encode_part_head(self._position, 0))
            self._written_at = now

    def runtime_info(self) -> HAConnectionRuntimeInfo:
        """For 907."""
        return HAConnectionRuntimeInfo(
            addr=self.peer,
            slave_ack_offset=self.acknowledged,
            diff=self._master.log_end - self.acknowledged,
            in_sync=self._master.in_sync(self),
            transferred_byte_in_second=self._rate,
            transfer_from_where=self._position if self._position is not None else -1,
        )

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
