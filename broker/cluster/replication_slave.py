"""A slave's side of replication: it copies its master's log.

It connects to haMasterAddress, or to the HA port that the name servers answer, reports the end of its own log, at first
and after each part, and dispatches new records to their queues in slices, so that readers do not wait.

After a broken connection the slave connects again in 5 s. It does the same if the master sends a log that does not
continue ours: it never truncates its own log. Mirrors DefaultHAClient. The bytes are in `protocol/wire/ha_stream.py`;
`metadata_sync.py` copies topics, groups and offsets.
"""

import asyncio
import logging
from typing import Final, cast

from pocketmq.protocol.bodies.replication import HAClientRuntimeInfo
from pocketmq.protocol.errors import FrameError
from pocketmq.protocol.wire.ha_stream import REPORT, PartReader
from pocketmq.store import StoreError

from ..config.addresses import host_and_port
from ..network.server import CONNECT_TIMEOUT_SECONDS
from ..state.broker_state import BrokerState
from .registration import Registration

_log = logging.getLogger("pocketmq.cluster")

RETRY_SECONDS: Final = 5.0
MIN_HA_ADDRESS_LENGTH: Final = 6
"""A shorter haMasterAddress is ignored, as in the official broker."""


class ReplicationSlave:
    """`start` and `stop` mirror each other. `address` is the master's HA address, `None` as long as it is unknown."""

    def __init__(self, state: BrokerState, registration: Registration) -> None:
        self._state = state
        self._registration = registration
        self._task: asyncio.Task[None] | None = None
        self._connection: MasterConnection | None = None
        self.given_address: str | None = None
        """The master's HA address set by 906; without it the name servers' answer is used."""
        self.master_flushed_offset = 0
        """Set by 908, answered by 907."""

    @property
    def address(self) -> str | None:
        configured = self._state.config.store.ha_master_address
        if configured is not None and len(configured) >= MIN_HA_ADDRESS_LENGTH:
            return configured
        return self.given_address or self._registration.master_ha_address

    def start(self) -> None:
        if self._state.config.is_slave:
            self._task = asyncio.get_running_loop().create_task(self._follow(), name="replication")

    async def stop(self) -> None:
        if self._connection is not None:
            self._connection.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            address = self.address
            if address is not None:
                try:
                    await self._copy_from(address, loop)
                except Exception:
                    _log.exception("cannot copy the log of %s", address)
            await asyncio.sleep(RETRY_SECONDS if address is not None else RETRY_SECONDS / 10)

    async def _copy_from(self, address: str, loop: asyncio.AbstractEventLoop) -> None:
        try:
            host, port = host_and_port(address)
            async with asyncio.timeout(CONNECT_TIMEOUT_SECONDS):
                _, connection = await loop.create_connection(
                    lambda: MasterConnection(self._state, address), host, port
                )
        except (OSError, ValueError, TimeoutError) as error:
            _log.warning("cannot reach the master's log at %s: %s", address, str(error) or "timed out")
            return
        self._connection = connection
        _log.info("copying the log of %s", address)
        config = self._state.config.store
        try:
            while not connection.ended.done() and self.address == address:
                await asyncio.wait((connection.ended,), timeout=0.5)
                connection.watch(config.ha_send_heartbeat_interval, config.ha_housekeeping_interval)
        finally:
            self._connection = None
            connection.abort()

    def runtime_info(self) -> HAClientRuntimeInfo:
        """For 907."""
        if self._connection is None:
            return HAClientRuntimeInfo(
                master_addr=self.address,
                max_offset=self._state.store.log_end,
                master_flush_offset=self.master_flushed_offset,
            )
        return self._connection.runtime_info(self.master_flushed_offset)


class MasterConnection(asyncio.Protocol):
    """The stream from one master. `ended` is done when the connection is closed."""

    def __init__(self, state: BrokerState, address: str) -> None:
        self._store = state.store
        self._store.on_copied_flushed = self._dispatch_soon
        self._clock = state.clock
        self._loop = asyncio.get_running_loop()
        self._address = address
        self._parts = PartReader()
        self._transport: asyncio.Transport | None = None
        self._reported_at = self._read_at = self._rate_since = self._loop.time()
        self._read_ms = self._wrote_ms = 0
        self._received = self._received_before = self._rate = 0
        self._is_scheduled = self._is_stopped = False
        self.ended: asyncio.Future[None] = self._loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._report()

    def connection_lost(self, error: Exception | None) -> None:
        _log.warning("lost the connection to the master's log at %s: %s", self._address, error or "closed")
        self._transport = None
        if not self.ended.done():
            self.ended.set_result(None)

    def data_received(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self._read_at = self._loop.time()
        self._read_ms = self._clock.now_ms()
        self._received += len(data)
        replication = self._store.replication
        before = replication.end
        try:
            for position, part in self._parts.feed(data):
                self._store.append_copied(position, part)
        except (FrameError, StoreError, OSError) as error:
            _log.error("cannot copy the master's log at %s: %s", self._address, error)
            self._transport.abort()
        if replication.end != before:
            self._report()
            self._dispatch_soon()

    def _report(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(REPORT.pack(self._store.replication.end))
            self._reported_at = self._loop.time()
            self._wrote_ms = self._clock.now_ms()

    def _dispatch_soon(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._dispatch)

    def _dispatch(self) -> None:
        self._is_scheduled = False
        if self._is_stopped:
            return
        try:
            if self._store.dispatch_copied():
                self._dispatch_soon()
        except (StoreError, OSError) as error:
            _log.error("cannot dispatch copied records to their queues: %s", error)
            self.abort()  # the next connection tries again

    def watch(self, heartbeat_ms: int, housekeeping_ms: int) -> None:
        """Report if that is due; abort the connection of a master that sends nothing."""
        now = self._loop.time()
        if now - self._rate_since >= 1:
            self._rate = int((self._received - self._received_before) / (now - self._rate_since))
            self._received_before, self._rate_since = self._received, now
        if (now - self._read_at) * 1000 > housekeeping_ms:
            _log.warning("the master at %s sent nothing for %d ms", self._address, housekeeping_ms)
            self.abort()
        elif (now - self._reported_at) * 1000 > heartbeat_ms:
            self._report()

    def runtime_info(self, master_flushed_offset: int) -> HAClientRuntimeInfo:
        """For 907."""
        return HAClientRuntimeInfo(
            master_addr=self._address,
            transferred_byte_in_second=self._rate,
            max_offset=self._store.log_end,
            last_read_timestamp=self._read_ms,
            last_write_timestamp=self._wrote_ms,
            master_flush_offset=master_flushed_offset,
        )

    def stop(self) -> None:
        """Abort the connection and leave the store alone: closing the store dispatches the remaining records."""
        self._is_stopped = True
        self.abort()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
