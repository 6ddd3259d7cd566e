"""Two watchers of one server, with the faults between them:

    peer  |  log  |  SentReplies  |  faults  |  HandledRequests  |  handlers

`SentReplies` sees the replies that are sent: one that a fault swallowed is no delivery. `HandledRequests` sees what
reached the broker: a commit that a fault refused is none. Both let sends pass undecoded; stored messages are read in
the store.
"""

from collections.abc import Mapping
from typing import Final

from pocketmq.broker.network.watch import ReplyBody, Watched, Watcher
from pocketmq.protocol.requests.membership import HeartBeat
from pocketmq.protocol.requests.offset import UpdateConsumerOffset
from pocketmq.protocol.requests.pop import AckMessage, BatchAckMessage, ChangeMessageInvisibleTime
from pocketmq.protocol.requests.send import ConsumerSendMsgBack
from pocketmq.protocol.rpc_numbers import FIRST_RPC
from pocketmq.protocol.wire.command import ONEWAY_FLAG, Command

from ..requests.logged_request import LogEntry
from ..requests.request_log import LogWatcher
from .book import Book
from .reading import POPS, PULLS

_READS: Final = PULLS | POPS
_AT_ONCE: Final = _READS | {HeartBeat.code}
"""What counts when it arrives: the answer to a read may be held for a long time."""
_WHEN_DONE: Final = frozenset(
    kind.code
    for kind in (
        UpdateConsumerOffset,
        AckMessage,
        BatchAckMessage,
        ChangeMessageInvisibleTime,
        ConsumerSendMsgBack,
    )
)


class SentReplies(Watcher):
    """Nearer to the peer than the faults: notes the answers to pulls and pops."""

    sees_raw = True

    def __init__(self, book: Book, log: LogWatcher) -> None:
        self._book = book
        self._log = log
        self._answered: tuple[Command, LogEntry] | None = None
        """The newest answer: a fault may send it twice."""

    def answering(self, connection: Watched, command: Command, reply: Command, body: ReplyBody) -> bool:
        is_read = command.code in _READS or _is_read(command)
        if is_read and reply.code == 0 and body is not None:
            kept = self._log.entry_of(command)
            if kept is None and self._answered is not None and self._answered[0] is command:
                kept = self._answered[1]
            if kept is not None:
                self._answered = command, kept
                whole = bytes(body) if isinstance(body, bytes | memoryview) else b"".join(body)
                self._book.add(kept, whole, reply.fields)
        return False


class HandledRequests(Watcher):
    """Behind the faults: notes what the broker is asked to read, and what it has done."""

    sees_raw = True

    def __init__(self, book: Book, log: LogWatcher) -> None:
        self._book = book
        self._log = log

    def received(self, connection: Watched, command: Command) -> bool:
        code = command.code
        if (
            code in _AT_ONCE
            or (code >= FIRST_RPC and _is_read(command))
            or (code in _WHEN_DONE and command.flag & ONEWAY_FLAG)
        ):
            kept = self._log.entry_of(command)
            if kept is not None:
                self._book.add(kept)
        return False

    def answering(self, connection: Watched, command: Command, reply: Command, body: ReplyBody) -> bool:
        done: Mapping[str, str] | None = None
        if command.code >= FIRST_RPC:
            done = _effects(command, reply, body)
        elif command.code in _WHEN_DONE and reply.code == 0:
            done = {}
        if done is not None:
            kept = self._log.entry_of(command)
            if kept is not None:
                self._book.add(kept, None, done)
        return False


def _is_read(command: Command) -> bool:
    """Whether a gRPC call reads messages."""
    if command.code < FIRST_RPC:
        return False
    from .rpc_reading import RECEIVE

    return command.code == RECEIVE


def _effects(command: Command, reply: Command, body: ReplyBody) -> Mapping[str, str] | None:
    """What a gRPC call did to messages; `None`: nothing."""
    from .rpc_reading import ACTS, effects

    if command.code not in ACTS:
        return None
    whole = body if isinstance(body, bytes) else b""
    return effects(command, reply, whole)
