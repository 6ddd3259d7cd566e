"""RemoteRocketMQ: `rocketmq_noproc`, a test's view of a server that already runs, official or ours.

    with RemoteRocketMQ("127.0.0.1:9876", "t7-") as rocketmq:
        orders = rocketmq.topic("orders")

The same methods as those of `RocketMQ`, over the wire. At the end, the topics and groups that were made here are
deleted; what a client made by sending stays, as on any server that is shared.
"""

from typing import Final, NoReturn, Self

from .errors import TestingError
from .server.loop_thread import Lifetime
from .view_of_server import ServerView
from .views.wire_source import WireSource

EMBEDDED_ONLY: Final = (
    *("server", "locks", "held_pulls", "delayed", "half_messages", "snapshot", "restore"),
    *("faults", "requests", "clock", "ledger"),
)
"""What only a server in this process can do."""


class RemoteRocketMQ(ServerView, Lifetime):
    """`start` and `stop` mirror each other; both context managers call them."""

    def __init__(self, namesrv_addr: str, prefix: str = "") -> None:
        self._wire = WireSource(namesrv_addr)
        super().__init__(self._wire, prefix)
        self.namesrv_addr = namesrv_addr

    def start(self) -> Self:
        """Connect. `TestingError` with one line if no server answers."""
        self._wire.start()
        return self

    def stop(self) -> None:
        """Delete the topics and groups that were made here, and disconnect."""
        self._wire.stop()

    def __getattr__(self, name: str) -> NoReturn:
        if name in EMBEDDED_ONLY:
            raise TestingError(
                f"rocketmq_noproc has no {name}: that needs a server in this process, the fixture rocketmq"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
