"""Watchers: objects that see, and may change, what passes on the connections of a server.

    peer -> received -> [ handler ] -> answering -> peer        its requests and our replies
    peer <- calling                                             our own requests to it

The journal is a watcher; so are the request log and the faults of `pocketmq.testing`. A server without watchers costs
its connections one attribute test a request. With several, `received` runs from the first watcher to the last, the
other way round on the way out: the first one is nearest to the peer. A watcher that holds replies back or changes them
is added last, so that the others see what the peer sees.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pocketmq.core.sends import Send
from pocketmq.protocol.wire.command import Command, RawBody

if TYPE_CHECKING:
    import asyncio

    from .dispatch import Result

ReplyBody = RawBody | Sequence[RawBody] | None
"""The body of a frame, in one piece or several. A piece may be a view of a store file: keep a copy, not the view."""
_Received = Callable[["Watched", Command], bool]
_Answering = Callable[["Watched", Command, Command, ReplyBody], bool]
_Calling = Callable[["Watched", Command, ReplyBody], bool]
_NeedsDecoded = Callable[["Watched", Sequence[Send]], bool]
_Exchanged = Callable[["Watched", Sequence[Send], Sequence[bytes]], None]


def whole_body(body: ReplyBody) -> bytes:
    """A copy in one piece; empty for a frame without a body."""
    if body is None:
        return b""
    return bytes(body) if isinstance(body, bytes | memoryview) else b"".join(body)


class Watched(Protocol):
    """A connection, as watchers use it."""

    loop: "asyncio.AbstractEventLoop"
    peer: str

    @property
    def closed(self) -> bool: ...

    def dispatch(self, command: Command) -> None:
        """Call the handler of a request that a watcher held back in `received`."""

    def answer(self, command: Command, result: "Result") -> None:
        """Reply to a request in the handler's place; passes `answering`."""

    def reply(self, command: Command, reply: Command, body: ReplyBody) -> None:
        """Send a reply that a watcher held back in `answering`; passes `answering` again."""

    def write(self, command: Command, body: ReplyBody = None) -> None:
        """Queue one frame; no watcher sees it."""

    def wrap_transport(self, wrap: "Callable[[asyncio.Transport], asyncio.Transport]") -> None:
        """Put a transport between the connection and its socket."""

    def close(self) -> None: ...

    def abort(self) -> None: ...


class Watcher:
    """Watches one server. Every method runs on the server's loop, for each request: it must neither wait nor raise."""

    sees_raw: bool = False
    """Whether `exchanged` is enough for a send that `needs_decoded` lets pass: the connection need not decode it then.
    A watcher that changes this calls `Server.watchers_changed`."""

    def opened(self, connection: Watched) -> None:
        """A connection was opened, by either side. Not called for those opened before the watcher was added."""

    def closed(self, connection: Watched) -> None:
        """A connection was closed. Its unanswered requests stay unanswered."""

    def received(self, connection: Watched, command: Command) -> bool:
        """A request arrived. True if the watcher takes it: the connection does nothing more with it."""
        return False

    def answering(self, connection: Watched, command: Command, reply: Command, body: ReplyBody) -> bool:
        """The reply to `command` (the object that `received` had) is ready. True if the watcher takes it."""
        return False

    def cancelled(self, connection: Watched, command: Command) -> None:
        """The peer wants no reply to `command` any more, and gets none. Only gRPC has this."""

    def calling(self, connection: Watched, command: Command, body: ReplyBody) -> bool:
        """We send the peer a request. True if the watcher takes it: it is not sent."""
        return False

    def needs_decoded(self, connection: Watched, frames: Sequence[Send]) -> bool:
        """Sends arrived that were not decoded. True if `received` has to see one of them."""
        return False

    def exchanged(self, connection: Watched, frames: Sequence[Send], replies: Sequence[bytes]) -> None:
        """These sends were answered on the short way, each with a whole frame. Keep copies of the bytes, not views."""


class Watch:
    """The watchers of one server, as its connections call them."""

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self.opened: Callable[[Watched], object] = _until_taken(watchers, "opened")
        self.closed: Callable[[Watched], object] = _until_taken(watchers, "closed")
        self.cancelled: Callable[[Watched, Command], object] = _until_taken(watchers, "cancelled")
        self.received: _Received = _until_taken(watchers, "received")
        self.answering: _Answering = _until_taken(watchers[::-1], "answering")
        self.calling: _Calling = _until_taken(watchers[::-1], "calling")
        self._needs_decoded: _NeedsDecoded = _until_taken(watchers, "needs_decoded")
        self.exchanged: _Exchanged | None = None
        """Called for sends that were answered without decoding them; `None` if a watcher needs every send decoded."""
        if all(one.sees_raw for one in watchers):
            self.exchanged = _until_taken(watchers, "exchanged")

    def lets_pass(self, connection: Watched, frames: Sequence[Send]) -> bool:
        """Whether these sends may be handled without decoding them."""
        return self.exchanged is not None and not self._needs_decoded(connection, frames)


def _until_taken(watchers: Sequence[Watcher], method: str) -> Callable[..., Any]:
    """Calls the watchers that have this method of their own (the others would do nothing), until one takes it."""
    having = [one for one in watchers if getattr(type(one), method) is not getattr(Watcher, method)]
    calls = [getattr(one, method) for one in having]

    def call_each(*arguments: Any) -> bool:
        for call in calls:  # noqa: SIM110 - quicker than a generator
            if call(*arguments):
                return True
        return False

    return calls[0] if len(calls) == 1 else call_each  # mostly there is only one


class Watchable:
    """A server, of either protocol, and its watchers."""

    def __init__(self, watchers: Sequence[Watcher] = ()) -> None:
        self._watchers = tuple(watchers)
        self.watch: Watch | None = None
        """What the connections call; `None` while nothing watches."""
        Watchable.watchers_changed(self)

    def add_watcher(self, watcher: Watcher) -> None:
        """Let it see every request from now on, also of connections that are open."""
        self._watchers += (watcher,)
        self.watchers_changed()

    def remove_watcher(self, watcher: Watcher) -> None:
        self._watchers = tuple(one for one in self._watchers if one is not watcher)
        self.watchers_changed()

    def watchers_changed(self) -> None:
        """A watcher was added or removed, or its `sees_raw` changed."""
        self.watch = Watch(self._watchers) if self._watchers else None


class SideServer(Watchable):
    """A server of another protocol in front of the same broker (gRPC)."""

    answered: Mapping[tuple[str, str], int]
    """How many calls were answered, by the name of the rpc and of the code."""
    open_connections: int
