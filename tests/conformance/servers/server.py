"""What a test sees of any server: its network, its ports, and the Java programs beside it.

`OfficialServer` (official/servers.py) and `OurServer` (our_server.py) have networks of their own; `LocalServer`
(local_server.py) is ours for tests that need only raw frames.
"""

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from conformance.official.programs import Programs
from conformance.servers import remoting
from conformance.servers.namespaces import Namespace

NAME_SERVER_PORT = 9876
BROKER_PORT = 10911
NAMESRV_ADDR = f"127.0.0.1:{NAME_SERVER_PORT}"
GET_BROKER_CLUSTER_INFO = 106


class Server(ABC):
    """A name server and a broker in one namespace, on the official ports. Start it, or use it as a context
    manager.

    `side` names it in test ids; `emulates` is "4.9" or "5.5", for expectations on which the two lines differ.
    """

    side: str
    emulates: str

    def __init__(self, home: Path, namespace: Namespace | None = None) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        self.store = home / "store"
        self._own_namespace = namespace is None
        self.namespace = Namespace() if namespace is None else namespace
        self.programs = Programs(self.namespace, home / "programs", NAMESRV_ADDR)

    def connect(self, port: int = BROKER_PORT, timeout: float = 5.0) -> socket.socket:
        """A connected blocking socket; OSError where nothing listens."""
        return self.namespace.connect(port, timeout=timeout)

    @abstractmethod
    def start(self) -> None:
        """Return when both ports serve and the broker is in the route table."""

    @abstractmethod
    def stop(self) -> None:
        """End it as its operator would, keeping the store: `start` opens the same one again."""

    @abstractmethod
    def kill(self) -> None:
        """End it without warning, keeping the store."""

    def end(self) -> None:
        """How `close` ends it: by default with a kill, because no test opens the store again."""
        self.kill()

    def close(self) -> None:
        """End it, and everything else in its namespace."""
        try:
            self.programs.close()
            self.end()
        finally:
            if self._own_namespace:
                self.namespace.close()

    def call(
        self, code: int, port: int = BROKER_PORT, body: bytes = b"", version: int = 0, **fields: object
    ) -> remoting.Reply:
        """One request on a connection of its own; header fields as keyword arguments as on the wire."""
        with self.connect(port) as connection:
            return remoting.call(connection, code, fields, body, version)

    def has_broker(self, name: str = "broker-a") -> bool:
        """Whether the name server knows that broker."""
        try:
            answer = self.call(GET_BROKER_CLUSTER_INFO, NAME_SERVER_PORT)
        except OSError:
            return False
        return f'"{name}"'.encode() in answer.body

    def __enter__(self) -> "Server":
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


Names = Callable[[str], str]
"""A name of a topic or group that no other test uses."""
ServerOf = Callable[[str], Server]
"""The server of a side."""
StartServer = Callable[..., Server]


@contextmanager
def started_at_first_use(
    make: ServerOf, prepare: Callable[[Server], None] | None = None
) -> Iterator[ServerOf]:
    """The one server of each side: made, started and prepared when it is first asked for, closed at the end."""
    servers: dict[str, Server] = {}
    with ExitStack() as running:

        def get(side: str) -> Server:
            if side not in servers:
                servers[side] = running.enter_context(make(side))
                if prepare is not None:
                    prepare(servers[side])
            return servers[side]

        yield get
