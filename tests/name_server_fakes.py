"""A name server on a port of its own, for tests: real sockets, virtual clock.

`RunningNameServer` serves it; `stop` and another `start` are a restart. Used by the tests of the name server and of the
broker's registration.
"""

from pocketmq.broker.config.name_server_config import NameServerConfig
from pocketmq.broker.name_server import handlers
from pocketmq.broker.name_server.name_server import NameServer
from pocketmq.broker.network.dispatch import NAME_SERVER
from pocketmq.broker.network.server import Server
from pocketmq.protocol.languages import V4_9_7, V5_5_0
from pocketmq.store.clock import VirtualClock

from ports import fixed_port

SERVED = (handlers,)
"""Imported to fill NAME_SERVER."""


class RunningNameServer:
    """A name server of line 4 or 5, listening between `start` and `stop`."""

    def __init__(self, line: int = 5, config: NameServerConfig | None = None) -> None:
        self.line = line
        self.clock = VirtualClock()
        self.config = config or NameServerConfig()
        self.port = fixed_port()
        self.state: NameServer
        self.server: Server

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Serve, on the same port as before; what was registered is forgotten, as after a restart."""
        self.state = NameServer(self.config, self.clock, is_5=self.line == 5)
        self.server = Server("name server", version=V5_5_0 if self.line == 5 else V4_9_7)
        self.port = await self.server.bind("127.0.0.1", self.port)
        handlers = NAME_SERVER.of_line(5 if self.line == 5 else 4).bind(self.state)
        await self.server.serve(handlers, on_close=self.state.connection_closed)
        self.state.start(self.server)

    async def stop(self) -> None:
        await self.server.close()
        self.state.stop()
