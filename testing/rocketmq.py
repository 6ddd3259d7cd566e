"""RocketMQ: topics, groups and messages of one test, on an embedded server.

    rocketmq = RocketMQ(server, "t7-")                  each test has its own prefix; the fixture picks it
    orders = rocketmq.topic("orders", queues=2)         t7-orders: created, and known to the name server
    billing = rocketmq.group("billing")                 t7-billing
    rocketmq.send(orders, "one", tags="created")
    run_code_under_test(rocketmq.namesrv_addr, orders, billing)
    rocketmq.wait_consumed(orders, billing)
    assert [message.text for message in rocketmq.messages("invoices")] == ["one"]

Looking at messages moves no offset and creates no group. Names that the test did not create here, like "invoices", are
used as they are. This is not a client; those are in `pocketmq.client`. Every method may be called from any thread. The
waits refuse to run inside a running event loop, because they would block it: use those of `rocketmq.aio`.
"""

from pathlib import Path
from typing import Final

from .ledger.ledger import Ledger
from .server.embedded import EmbeddedServer
from .state.snapshot import Snapshot
from .time.clock import ServerClock
from .view_of_server import ServerView
from .views.embedded_source import EmbeddedSource, held_pulls_of, queue_locks
from .views.pending import delayed_messages, open_half_messages
from .views.values import HeldPull, Listing, Lock, StoredMessage


class RocketMQ(ServerView):
    """Names with one prefix, on one server. Nothing in it needs closing."""

    def __init__(self, server: EmbeddedServer, prefix: str = "") -> None:
        super().__init__(EmbeddedSource(server), prefix)
        self.server = server
        self.is_strict = False
        """True if every group must have a clean verdict at the end of the test."""
        self.requests: Final = server.requests
        """Every request and reply: `find`, `count`, `wait_for`, `none`."""
        self.faults: Final = server.faults
        """What the server does wrong: `refuse`, `silence`, `delay` ..."""

    @property
    def namesrv_addr(self) -> str:
        """`127.0.0.1:port`, what clients call namesrvAddr."""
        return self.server.namesrv_addr

    @property
    def grpc_endpoint(self) -> str:
        """`127.0.0.1:port`, what gRPC clients call endpoint. The first use opens the port."""
        return self.server.grpc_endpoint

    @property
    def clock(self) -> ServerClock:
        """The server's time; a server with `virtual_time` moves it only when the test does."""
        return self.server.clock

    @property
    def ledger(self) -> Ledger:
        """What became of every message, and verdicts on groups. Needs `ledger=True`, in the marker or of the server."""
        return self.server.ledger

    # -- views of what only the server itself knows. Called with fields, each is filtered: `locks(group="billing")`

    @property
    def locks(self) -> Listing[Lock]:
        """Queues that a member consumes in order, with its client id; expired locks are not listed."""
        return Listing(self.server.call(queue_locks, self.server.broker))

    @property
    def held_pulls(self) -> Listing[HeldPull]:
        """Pulls that wait for the next message of a queue."""
        return Listing(self.server.call(held_pulls_of, self.server.broker))

    @property
    def delayed(self) -> Listing[StoredMessage]:
        """Messages that wait for a delay level or a time, oldest first, under the topic they will go to."""
        return Listing(self.server.call(delayed_messages, self.server.broker))

    @property
    def half_messages(self) -> Listing[StoredMessage]:
        """Messages whose transaction has not ended, oldest first, under the topic they would go to."""
        return Listing(self.server.call(open_half_messages, self.server.broker))

    # -- state

    def snapshot(self, path: str | Path | None = None) -> Snapshot:
        """As `EmbeddedServer.snapshot`."""
        return self.server.snapshot(path)

    def restore(self, snapshot: Snapshot | str | Path) -> None:
        """As `EmbeddedServer.restore`."""
        self.server.restore(snapshot)
