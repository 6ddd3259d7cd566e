"""The log of requests: filled on the server's loop by watchers, read from any thread.

At most `ENTRIES` entries, or `BYTES` of them; then the oldest leave, and `dropped` counts them. The size of an entry is
that of its frames, or an estimate. `list(deque)` and `append` do not disturb each other: both hold the interpreter.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from time import time_ns
from typing import Final, cast

import msgspec
from pocketmq.broker.network.watch import ReplyBody, Watched, Watcher, whole_body
from pocketmq.core.sends import Send, frames_of
from pocketmq.protocol.bodies.client import HeartbeatData
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.requests.membership import HeartBeat
from pocketmq.protocol.requests.name_server import (
    BrokerHeartbeat,
    QueryDataVersion,
    RegisterBroker,
    UnregisterBroker,
)
from pocketmq.protocol.wire.command import ONEWAY_FLAG, Command

from .logged_request import LogEntry, LoggedConnection, LoggedRequest

ENTRIES: Final = 100_000
BYTES: Final = 64 * 1024 * 1024
TELL_SECONDS: Final = 0.02
FREED_AT_ONCE: Final = 2000
ENTRY_BYTES: Final = 600
"""Header, reply and bookkeeping of an entry, about."""
_REGISTRATION: Final = frozenset(
    (RegisterBroker.code, UnregisterBroker.code, BrokerHeartbeat.code, QueryDataVersion.code)
)


def _free(entries: deque[LogEntry]) -> None:
    """Some in a turn of the loop: a hundred thousand together take 50 ms."""
    for _ in range(min(len(entries), FREED_AT_ONCE)):
        entries.popleft()
    if entries:
        asyncio.get_running_loop().call_soon(_free, entries)


class RequestLog:
    """Entries of all servers that its watchers watch. Written in one thread; `entries` may be called from any."""

    def __init__(self, *, entries: int = ENTRIES, max_bytes: int = BYTES) -> None:
        self._most = entries
        self._max_bytes = max_bytes
        self._kept: deque[LogEntry] = deque()
        self._bytes = 0
        self._count = 0
        self._left_id = 0
        """The id of the entry that left last."""
        self.next_id = 1
        self.dropped = 0
        """Entries that left since the last `clear`."""
        self.own_brokers: set[str] = set()
        """Addresses of brokers whose registrations are not logged."""
        self.changed: list[Callable[[], None]] = []
        """Called on the loop, at most every `TELL_SECONDS`, after entries were added or got their replies."""
        self._will_tell = False

    def entries(self) -> Iterator[LoggedRequest]:
        """All entries of this moment, oldest first; each is decoded when the iteration reaches it."""
        return self._singly(list(self._kept), 0)

    def after(self, last_id: int) -> list[LoggedRequest]:
        """Entries with an id above this one, oldest first."""
        return list(self._singly(self._kept_after(last_id), last_id))

    def single_entries(self) -> list[LogEntry]:
        """All entries of this moment but those that are kept together: sends."""
        return [kept for kept in list(self._kept) if not isinstance(kept.request, bytes)]

    def one_by_one(self, last_id: int, *, newest_first: bool) -> Iterator[LoggedRequest]:
        """Entries of this moment with an id above this one; each is decoded when the iteration reaches it."""
        kept = self._kept_after(last_id)
        if not newest_first:
            return self._singly(kept, last_id)
        return (one for together in reversed(kept) for one in reversed([*self._singly([together], last_id)]))

    def _kept_after(self, last_id: int) -> list[LogEntry]:
        """From the newest one back: most readers want what is new since they looked last."""
        found: list[LogEntry] = []
        try:
            for kept in reversed(self._kept):
                if kept.id + kept.count <= last_id + 1:
                    break
                found.append(kept)
        except RuntimeError:  # another thread added one meanwhile
            return [kept for kept in list(self._kept) if kept.id + kept.count > last_id + 1]
        found.reverse()
        return found

    def last(self, count: int) -> list[LoggedRequest]:
        return list(self._singly(list(self._kept)[-count:], 0))[-count:] if count else []

    def _singly(self, found: list[LogEntry], last_id: int) -> Iterator[LoggedRequest]:
        left, next_id = max(self._left_id, last_id), self.next_id
        for kept in found:
            for single in kept.singly(max(0, left + 1 - kept.id)):
                if single.id < next_id:
                    yield LoggedRequest(single)

    def __len__(self) -> int:
        return self._count

    def clear(self) -> None:
        """Forget every entry; ids go on. Called where entries are added."""
        left, self._kept = self._kept, deque()
        self._bytes = self._count = self.dropped = 0
        _free(left)

    def add(
        self, connection: LoggedConnection, request: Command, body_bytes: int, *, is_to_client: bool = False
    ) -> LogEntry:
        """One request; its reply is set when it is sent."""
        kept = LogEntry(self.next_id, time_ns(), connection, request, None, is_to_client)
        self.next_id += 1
        self._kept.append(kept)
        self._count += 1
        self._bytes += ENTRY_BYTES + body_bytes
        if self._count > self._most or self._bytes > self._max_bytes:
            self._drop_oldest()
        return kept

    def add_answered(self, connection: LoggedConnection, requests: bytes, replies: bytes, count: int) -> None:
        """Several sends that were answered together: the bytes of all frames."""
        self._kept.append(LogEntry(self.next_id, time_ns(), connection, requests, replies, False, count))
        self.next_id += count
        self._count += count
        self._bytes += len(requests) + len(replies)
        if self._count > self._most or self._bytes > self._max_bytes:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Of entries that are kept together the first ones may leave before the others; their bytes leave last."""
        kept = self._kept
        while self._count > 1 and (self._count > self._most or self._bytes > self._max_bytes):
            oldest = kept[0]
            self._left_id = max(self._left_id + 1, oldest.id)
            self._count -= 1
            self.dropped += 1
            if self._left_id == oldest.id + oldest.count - 1:
                self._bytes -= _size(kept.popleft())

    def tell(self) -> None:
        """Something changed: say so to those who wait, soon. A thousand of them must not cost each request a thousand
        calls."""
        if not self._will_tell:
            self._will_tell = True
            asyncio.get_running_loop().call_later(TELL_SECONDS, self._tell)

    def _tell(self) -> None:
        self._will_tell = False
        for function in list(self.changed):
            function()


def _size(kept: LogEntry) -> int:
    request = kept.request
    if isinstance(request, bytes):
        return len(request) + len(cast(bytes, kept.reply))
    return ENTRY_BYTES + (0 if request.body is None else len(request.body))


class LogWatcher(Watcher):
    """Fills the log with what one server sees. `broker` is its name; None for a name server."""

    sees_raw = True

    def __init__(self, log: RequestLog, broker: str | None) -> None:
        self._log = log
        self._broker = broker
        self._connections: dict[Watched, LoggedConnection] = {}
        """Those of clients, and of brokers that asked for something, as clients do."""
        self._of_brokers: set[Watched] = set()
        """Brokers of the test have registered over them."""
        self._unanswered: dict[int, LogEntry] = {}
        """By the identity of the request's frame: a peer may use an opaque number twice."""
        self._last: LogEntry | None = None
        """The newest entry, while it has no reply: nearly every reply is the newest entry's."""
        self._newest: LogEntry | None = None
        self._called: tuple[Command, LogEntry] | None = None
        """The newest request to a client: a fault may have asked for its entry before."""

    def connection_of(self, connection: Watched) -> LoggedConnection:
        known = self._connections.get(connection)
        if known is None:
            known = self._connections[connection] = LoggedConnection(connection.peer, self._broker)
            known.is_of_broker = connection in self._of_brokers
            known.client_id = getattr(connection, "client_id", None)  # a gRPC client says it with each call
        return known

    def entry_of(self, command: Command) -> LogEntry | None:
        """The entry of the newest request, or of one that has no reply yet; None if it is not logged."""
        newest = self._newest
        if newest is not None and newest.request is command:
            return newest
        return self._unanswered.get(id(command))

    def known(self, connection: Watched) -> LoggedConnection | None:
        """What is known of a connection; None before its first logged request."""
        return self._connections.get(connection)

    def closed(self, connection: Watched) -> None:
        self._of_brokers.discard(connection)
        known = self._connections.pop(connection, None)
        if known is None:
            return
        for identity in [identity for identity, kept in self._unanswered.items() if kept.connection is known]:
            del self._unanswered[identity]
        if self._last is not None and self._last.connection is known:
            self._last = None

    def received(self, connection: Watched, command: Command) -> bool:
        is_registration = command.code in _REGISTRATION and self._broker is None
        if is_registration and (command.fields or {}).get("brokerAddr") in self._log.own_brokers:
            self._of_brokers.add(connection)
            if connection in self._connections:
                self._connections[connection].is_of_broker = True
            return False
        known = self._connections.get(connection) or self.connection_of(connection)
        if command.code == HeartBeat.code:
            _read_client_id(known, command)
        last, self._last = self._last, None
        if last is not None:
            self._unanswered[id(last.request)] = last
        body = command.body
        log = self._log
        kept = self._newest = log.add(known, command, 0 if body is None else len(body))
        if not command.flag & ONEWAY_FLAG:
            self._last = kept
        if log.changed:
            log.tell()
        return False

    def answering(self, connection: Watched, command: Command, reply: Command, body: ReplyBody) -> bool:
        last = self._last
        if last is not None and last.request is command:
            self._last = None
            kept = last
        else:
            found = self._unanswered.pop(id(command), None)
            if found is None:
                return False
            kept = found
        kept.reply, kept.answered_ns = reply, time_ns()
        if self._log.changed:
            self._log.tell()
        return False

    def cancelled(self, connection: Watched, command: Command) -> None:
        self.forget(command)

    def calling(self, connection: Watched, command: Command, body: ReplyBody) -> bool:
        self.called(connection, command, body)
        return False

    def called(self, connection: Watched, command: Command, body: ReplyBody) -> LogEntry | None:
        """The entry of a request to a client. None if the peer never sent us a request: it is no client then."""
        known = self._connections.get(connection)
        if known is None:
            return None
        if self._called is not None and self._called[0] is command:
            return self._called[1]
        whole = whole_body(body)
        request = msgspec.structs.replace(command, body=whole)
        kept = self._log.add(known, request, len(whole), is_to_client=True)
        self._called = command, kept
        if self._log.changed:
            self._log.tell()
        return kept

    def exchanged(self, connection: Watched, frames: Sequence[Send], replies: Sequence[bytes]) -> None:
        known = self._connections.get(connection) or self.connection_of(connection)
        self._log.add_answered(known, frames_of(frames), b"".join(replies), len(frames))
        if self._log.changed:
            self._log.tell()

    def forget(self, command: Command) -> None:
        """A request that will not be answered."""
        if self._last is not None and self._last.request is command:
            self._last = None
        self._unanswered.pop(id(command), None)


def _read_client_id(connection: LoggedConnection, command: Command) -> None:
    try:
        connection.client_id = (
            HeartbeatData.decode(bytes(command.body or b"")).client_id or connection.client_id
        )
    except ProtocolError:  # the handler refuses it
        pass
