"""The name server: its route table and key-value settings, and the scan for brokers without heartbeat.

The `NAME_SERVER` handlers work on it; `node.py` starts and stops it. Mirrors `NamesrvController`.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC
from pocketmq.protocol.requests.name_server import NotifyMinBrokerIdChange
from pocketmq.store import Clock

from ..bounded_cache import SaidOnce
from ..errors import PeerError
from ..network.connection import Connection
from ..network.dispatch import Peer
from ..state.table_saver import TableSaver
from ..time.slices import MAX_REPORTS
from .kv_config import KvConfig
from .route_table import RouteTable

if TYPE_CHECKING:
    from ..config.name_server_config import NameServerConfig
    from ..network.server import Server

_log = logging.getLogger("pocketmq.name_server")

FIRST_SCAN_SECONDS: Final = 5.0
SCAN_SECONDS_4: Final = 10.0
"""4.x scans every 10 s; 5.x has a setting for it."""
MAX_NOTICES: Final = 256
"""At most this many rounds of 905 run at once; a broker that misses one learns of the change by its own requests."""


class NameServer:
    """`start` and `stop` mirror each other. Only the event loop's thread touches it."""

    def __init__(self, config: "NameServerConfig", clock: Clock, *, is_5: bool = True) -> None:
        self.config = config
        self.is_5 = is_5
        self._said = SaidOnce()
        self.routes = RouteTable(config, clock, self._min_broker_changed, is_5=is_5)
        self.reports = asyncio.Semaphore(MAX_REPORTS)
        """Held by each handler that makes a list in slices."""
        self.files = TableSaver()
        self.kv = KvConfig(config.kv_config_path, self.files)
        self._clock = clock
        self._started_ms = clock.monotonic_ms()
        self._server: Server | None = None
        self._scan: asyncio.TimerHandle | None = None
        self._notices: set[asyncio.Task[None]] = set()
        self._brokers: dict[str, Connection] = {}

    def start(self, server: "Server") -> None:
        """Read the key-value settings and start the scan. Raises `StoreError` if the settings are damaged."""
        self.kv.load()
        self._server = server
        self._started_ms = self._clock.monotonic_ms()
        self._scan = server.loop.call_later(FIRST_SCAN_SECONDS, self._scan_and_reschedule)

    def stop(self) -> None:
        """Cancel the scan and the running notices. The server closes its connections itself."""
        if self._scan is not None:
            self._scan.cancel()
        for task in self._notices:
            task.cancel()
        self.files.stop()
        self.kv.close()
        self._server = None

    def connection_closed(self, connection: Peer) -> None:
        """Drop the brokers that registered on it."""
        for address in [address for address, known in self._brokers.items() if known is connection]:
            del self._brokers[address]
        self.routes.connection_closed(connection)

    @property
    def is_ready(self) -> bool:
        """False while clients must wait until brokers have registered (needWaitForService, 5.x)."""
        if not self.config.need_wait_for_service or not self.is_5:
            return True
        return self._clock.monotonic_ms() - self._started_ms >= self.config.wait_seconds_for_service * 1000

    def say_why_no_route(self, topic: str) -> None:
        """Say in the log, once a topic, why it has no route."""
        if topic.startswith("%") or topic == AUTO_CREATE_TOPIC or not self._said.first(topic):
            return
        if not self.routes.brokers:
            _log.warning("no route for topic %s: no broker is registered here", topic)
        elif self.routes.topics.get(AUTO_CREATE_TOPIC):
            _log.info("no route for topic %s yet: it does not exist; the first send creates it", topic)
        else:
            _log.warning(
                "no route for topic %s: it does not exist, and no broker creates topics by itself "
                "(autoCreateTopicEnable=false): create it first",
                topic,
            )

    def scan(self) -> None:
        """Drop the brokers whose heartbeat is overdue, and close their connections."""
        for connection in self.routes.expire():
            connection.close()

    def _scan_and_reschedule(self) -> None:
        assert self._server is not None
        try:
            self.scan()
        except Exception:
            _log.exception("the scan for brokers without heartbeat failed")
        seconds = self.config.scan_not_active_broker_interval / 1000 if self.is_5 else SCAN_SECONDS_4
        self._scan = self._server.loop.call_later(seconds, self._scan_and_reschedule)

    # -- notices of the smallest broker id

    def _min_broker_changed(
        self, addresses: dict[int, str], offline_address: str | None, ha_address: str | None
    ) -> None:
        if self._server is None or not addresses or len(self._notices) >= MAX_NOTICES:
            return
        smallest = min(addresses)
        notice = NotifyMinBrokerIdChange(
            min_broker_id=smallest,
            min_broker_addr=addresses[smallest],
            offline_broker_addr=offline_address,
            ha_broker_addr=ha_address,
        )
        # A new broker knows its own id; if a broker left, all get the notice.
        receivers = [
            address
            for broker_id, address in addresses.items()
            if offline_address is not None or len(addresses) == 1 or broker_id != smallest
        ]
        _log.info(
            "smallest broker id is now %d (%s): notifying %s",
            smallest,
            addresses[smallest],
            ", ".join(receivers),
        )
        task = self._server.loop.create_task(
            self._notify(receivers, notice), name="notices of a new smallest broker id"
        )
        self._notices.add(task)
        task.add_done_callback(self._notices.discard)

    async def _notify(self, receivers: list[str], notice: NotifyMinBrokerIdChange) -> None:
        for address in receivers:
            try:
                connection = await self._broker_at(address)
            except PeerError as error:
                _log.warning("cannot notify %s of the smallest broker id: %s", address, error)
                continue
            connection.notify(notice)

    async def _broker_at(self, address: str) -> Connection:
        connection = self._brokers.get(address)
        if connection is not None and not connection.closed:
            return connection
        if self._server is None:
            raise PeerError("the name server is stopping")
        connection = self._brokers[address] = await self._server.connect(address)
        return connection
