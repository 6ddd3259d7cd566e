"""Console: the HTTP port of a running node, on the node's own loop.

    console = Console(access)
    url = await console.start("127.0.0.1", 0)
    ...
    await console.stop()

uvicorn speaks HTTP; its server program, with its signals and its clock, is not used. Starlette, uvicorn and
prometheus-client are imported with this file only: a server without the port does not load them.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pocketmq.broker.errors import StartError
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol

from .app import application
from .connections import KEEP_ALIVE_SECONDS, MAX_HEAD_BYTES, HttpConnections
from .guard import Guard
from .server_access import ServerAccess

STOP_SECONDS: Final = 0.5
"""How long requests may take to end when the port closes."""


class Console:
    """`start` and `stop` mirror each other. A stopped console is not started again."""

    def __init__(
        self,
        access: ServerAccess,
        others: Callable[[], Mapping[str, ServerAccess]] | None = None,
        *,
        names: Sequence[str] = (),
    ) -> None:
        """`others` are shown behind `/brokers/NAME`; asked for with each new name. `names` are further
        names of this machine that clients may use."""
        self._access = access
        self._names = tuple(names)
        self._others = others
        self.connections: HttpConnections | None = None
        """Those of the port, once it has started."""
        self._server: asyncio.Server | None = None
        self.url = ""
        """`http://127.0.0.1:8080`, once it has started."""

    async def start(self, host: str, port: int) -> str:
        """Listen; returns the address for browsers. `StartError` if the port is taken."""
        app = application(self._access, Guard(host, self._names), self._others)
        config = Config(
            app,
            http=H11Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        )
        config.load()
        self.connections = HttpConnections(config)
        try:
            self._server = await asyncio.get_running_loop().create_server(self.connections, host, port)
        except OSError as error:
            raise StartError(f"cannot listen on {host}:{port}, the admin port: {error.strerror}") from error
        bound = self._server.sockets[0].getsockname()[1]
        shown = "127.0.0.1" if host in ("", "0.0.0.0", "::") else host
        self.url = f"http://[{shown}]:{bound}" if ":" in shown else f"http://{shown}:{bound}"
        return self.url

    async def stop(self) -> None:
        """Close the port and every connection; requests that still run half a second later are cancelled."""
        server, self._server = self._server, None
        if server is None or self.connections is None:
            return
        server.close()
        self.connections.stop()
        tasks = list(self.connections.state.tasks)
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=STOP_SECONDS)
