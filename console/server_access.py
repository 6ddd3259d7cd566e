"""ServerAccess: what the HTTP port shows and changes: one running node, and what its owner can do with it.

The owner (`pocketmq serve`, `EmbeddedServer`) gives it the faults, the request log and the starting state; this package
knows them by what they can do only. Everything belongs to the node's event loop, where the port runs too. A ValueError
of these parts becomes an answer 400; its attribute `allowed`, if it has one, says what is allowed.
"""

from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, TypeVar

from pocketmq.broker.broker import Broker
from pocketmq.broker.node import Node
from pocketmq.broker.time.timers import MovedTime
from pocketmq.protocol.requests.send import SendMessageReply, SendMessageV2

from .pages import Reading
from .values import LedgerMessage, LedgerVerdict, LoggedRequest, Words

ValueT = TypeVar("ValueT", covariant=True)
SEND_SECONDS = 5.0
"""How long the broker may take to answer a message that was posted."""


class Rules(Protocol):
    """Faults as JSON values."""

    def each(self, after: int) -> Iterator[dict[str, Any]]:
        """The rules with an id above `after`, with their newest hits, by id."""

    def words(self) -> Words: ...

    def add(self, words: dict[str, Any]) -> dict[str, Any]:
        """Add a rule; ValueError, and nothing is added."""

    def remove(self, rule_id: int) -> bool:
        """False if there is no such rule."""

    def clear(self) -> None: ...


class Shown(Protocol[ValueT]):
    """What is shown as a JSON object."""

    def as_json(self) -> ValueT: ...


class Follower(AbstractContextManager["Follower"], Protocol):
    """Reads new requests at its own pace; `missed` counts those that it came too late for."""

    missed: int

    async def next(self) -> Sequence[Shown[LoggedRequest]]: ...


class RequestLog(Protocol):
    """Requests with their replies. `words` are match words; ValueError for wrong ones."""

    def one_by_one(
        self, *, after: int, newest_first: bool, **words: Any
    ) -> Iterator[Shown[LoggedRequest] | None]:
        """Each with an id above `after` that matches, and None in place of each that does not."""

    def follow(self, **words: Any) -> Follower: ...


class Ledger(Protocol):
    """What became of every message. Each verdict is found in steps, between which others may have a turn."""

    def each_judged(
        self, topic: str | None, group: str | None, after: tuple[str, str]
    ) -> Iterator[Generator[None, None, Shown[LedgerVerdict]]]:
        """All that match, by topic and group, behind these two; the only one if both are given. ValueError, with what
        is `allowed`, for an unknown topic or group then."""

    def history_steps(self, message_id: str) -> Generator[None, None, Shown[LedgerMessage]]:
        """What became of one message. ValueError for an unknown id."""


class NotRunning(Exception):
    """The broker that is asked for is stopped; answered with 409."""


class ServerAccess:
    """A running node as the port sees it. What is None is answered with 409."""

    def __init__(
        self,
        node: Callable[[], Node],
        rules: Rules,
        requests: RequestLog,
        *,
        time: Callable[[], MovedTime | None] | None = None,
        ledger: Ledger | None = None,
        reset: Callable[[], Awaitable[None]] | None = None,
        take_snapshot: Callable[[], Awaitable[bytes]] | None = None,
        restore_snapshot: Callable[[bytes], Awaitable[None]] | None = None,
    ) -> None:
        """`node` is asked anew for each request: in a cluster, brokers end and start. It raises `NotRunning` while none
        runs. `time` is what several brokers share; without it, the node's own. `restore_snapshot` raises ValueError for
        bytes that are no snapshot; nothing is changed then."""
        self._node = node
        self._time = time
        self.rules = rules
        self.requests = requests
        self.ledger = ledger
        self.reset = reset
        self.take_snapshot = take_snapshot
        self.restore_snapshot = restore_snapshot
        self.reading: Final = Reading()
        self.open_streams = 0

    @property
    def node(self) -> Node:
        return self._node()

    @property
    def broker(self) -> Broker:
        return self.node.broker

    @property
    def time(self) -> MovedTime | None:
        """The virtual time; None if the node follows the wall's."""
        return self.node.time if self._time is None else self._time()

    async def send(self, request: SendMessageV2, body: bytes) -> SendMessageReply:
        """Send the broker a message over TCP, as a client does. `Refusal`, `PeerError`."""
        node = self.node
        connection = await node.server.connect(node.bound_address)
        try:
            _, reply = await connection.call(request, body, timeout_seconds=SEND_SECONDS)
        finally:
            connection.close()
        return reply
