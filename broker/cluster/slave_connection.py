"""A master's connection to one slave, on the HA port.

    the slave's first report    where copying starts; each later one: the end of the slave's log
    new records                 in parts of haTransferBatchSize, as long as the slave's socket accepts them
    no new records              a heartbeat every haSendHeartbeatInterval
    no report                   for haHousekeepingInterval: the connection is closed

Mirrors DefaultHAConnection. The bytes are in `protocol/wire/ha_stream.py`, the other side in `replication_slave.py`.
"""

import asyncio
import logging
from typing import Final, Protocol, cast

from pocketmq.protocol.bodies.replication import HAConnectionRuntimeInfo
from pocketmq.protocol.wire.ha_stream import ReportReader, encode_part_head

from ..network.descriptors import descriptor_of

_log = logging.getLogger("pocketmq.cluster")

BYTES_IN_AN_ITERATION: Final = 1 << 20
"""Copied to one slave in one loop iteration."""
UNREAD_BYTES: Final = 4 << 20
"""A slave that leaves more than this unread gets no more until it catches up."""


class Master(Protocol):
    """What a connection needs of `ReplicationMaster`."""

    @property
    def log_end(self) -> int: ...

    def connected(self, slave: "SlaveConnection") -> bool: ...

    def disconnected(self, slave: "SlaveConnection") -> None: ...

    def first_position(self, reported: int) -> int: ...

    def read(self, position: int) -> memoryview | None: ...

    def reported(self) -> None: ...

    def in_sync(self, slave: "SlaveConnection") -> bool: ...


class SlaveConnection(asyncio.Protocol):
    """One slave. `acknowledged` is the end of its log by its last report, -1 before the first report and after one that
    cannot be true."""

    def __init__(self, master: Master) -> None:
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
        host, port = transport.get_extra_info("peername")[:2]
        self.peer = f"{host}:{port}"
        if not self._master.connected(self):
            self._transport.abort()
            return
        _log.info("slave %s connected", self.peer)

    @property
    def descriptor(self) -> int:
        """The number of its socket; -1 without one."""
        return descriptor_of(self._transport)

    def connection_lost(self, error: Exception | None) -> None:
        _log.info("lost the connection of slave %s: %s", self.peer, error or "closed")
        self._transport = None
        self._master.disconnected(self)

    def data_received(self, data: bytes) -> None:
        reported = self._reports.feed(data)
        if reported is None:
            return
        self._read_at = asyncio.get_running_loop().time()
        is_first = self._position is None
        if self._position is None:
            self._position = self._master.first_position(reported)
        # No slave has what was not sent: a send must not be answered because one says so.
        is_true = reported <= min(self._position, self._master.log_end)
        self.acknowledged = reported if is_true else -1
        if is_first:
            _log.info("slave %s has the log up to %d: copying from %d", self.peer, reported, self._position)
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
        """Write parts until the log ends, the socket is full, or this slave had its share of the loop iteration."""
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
            self._transport.write(encode_part_head(self._position, 0))
            self._written_at = now

    def runtime_info(self) -> HAConnectionRuntimeInfo:
        """The entry of this slave in the answer to 907."""
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
