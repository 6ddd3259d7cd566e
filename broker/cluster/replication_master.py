"""A master's side of replication: the HA port, its slaves, and the sends that wait for them.

While no slave is connected, a send does nothing extra. With SYNC_MASTER the answer to a send waits for slaves: in the
4.9 line for one of them, in 5.x for inSyncReplicas - 1. The conversation with one slave is in `slave_connection.py`.
Mirrors DefaultHAService and GroupTransferService.
"""

import asyncio
import logging
from socket import socket
from typing import Final, Literal

from pocketmq.store import PutStatus
from pocketmq.store.config import DEFAULT_HA_PORT

from ..config.broker_config import BrokerConfig
from ..errors import StartError
from ..network.descriptors import Descriptors
from ..network.listening import accept, bind_sockets, port_of
from ..state.broker_state import BrokerState
from ..storing.log_waiters import LogWaiters
from .slave_connection import SlaveConnection

_log = logging.getLogger("pocketmq.cluster")

MAX_SLAVES: Final = 32
WATCH_SECONDS: Final = 0.5
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
    """`start` and `stop` mirror each other. A slave broker also listens: it can send the same log."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._listeners: list[asyncio.Server] = []
        self._timer: asyncio.TimerHandle | None = None
        self.waiters = LogWaiters(self._acknowledged, lambda: state.config.store.slave_timeout)
        """The sends that wait for slaves."""
        self._descriptors = Descriptors()
        self._is_scheduled = False
        self._is_guarded = (
            promises_protection(state.config) and state.config.store.ha_listen_port == DEFAULT_HA_PORT
        )
        """Whether slaves are refused, because the whole log would leave past access control and TLS."""
        self._has_said = False
        self.slaves: list[SlaveConnection] = []

    async def start(self, sockets: list[socket]) -> None:
        """Accept slaves on the HA port."""
        if promises_protection(self._state.config) and not self._is_guarded:
            _log.warning("slaves are accepted because haListenPort is set: %s", HA_PORT_IS_OPEN)
        loop = asyncio.get_running_loop()
        await accept(loop, lambda: SlaveConnection(self), sockets, self._listeners)
        self._timer = loop.call_later(WATCH_SECONDS, self._watch)

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

    @property
    def log_end(self) -> int:
        return self._state.store.replication.end

    def connected(self, slave: SlaveConnection) -> bool:
        """Add a slave; False if the HA port is closed or guarded, or has too many slaves."""
        now = asyncio.get_running_loop().time()
        if not self._descriptors.has_room(slave.descriptor, slave.peer, now):
            return False
        if not self._listeners or len(self.slaves) >= MAX_SLAVES:
            return False
        if self._is_guarded:
            if not self._has_said:
                self._has_said = True
                _log.warning("refused %s: %s", slave.peer, HA_PORT_IS_OPEN)
            return False
        self.slaves.append(slave)
        self._state.store.on_append = self._appended
        return True

    def disconnected(self, slave: SlaveConnection) -> None:
        if slave in self.slaves:
            self.slaves.remove(slave)
        if not self.slaves:
            self._state.store.on_append = None

    def _appended(self) -> None:
        """Send new records in the next loop iteration, all records of this iteration together."""
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
        if any(self.log_end - slave.acknowledged < behind for slave in self.slaves):
            return None
        return PutStatus.SLAVE_NOT_AVAILABLE

    def _acknowledged(self) -> int:
        """The log position up to which enough slaves have the log; -1 if too few slaves are connected."""
        needed = self.copies - 1
        reports = sorted((slave.acknowledged for slave in self.slaves), reverse=True)
        return reports[needed - 1] if 0 < needed <= len(reports) else -1

    def reported(self) -> None:
        """A slave has reported the end of its log: answer the sends that are replicated now."""
        self.waiters.look()

    # -- every half second

    def _watch(self) -> None:
        loop, config = asyncio.get_running_loop(), self._state.config.store
        for slave in list(self.slaves):
            slave.watch(loop.time(), config.ha_send_heartbeat_interval, config.ha_housekeeping_interval)
        self._timer = loop.call_later(WATCH_SECONDS, self._watch)

    def in_sync(self, slave: SlaveConnection) -> bool:
        behind = self.log_end - slave.acknowledged
        return slave.acknowledged >= 0 and behind < self._state.config.store.ha_max_gap_not_in_sync
