"""Records in the journal every request with its reply, and every request that the server sends.

What an entry contains: `pocketmq.protocol.journal_frames`.
"""

from collections.abc import Sequence
from time import time_ns
from typing import Final
from zlib import crc32

from pocketmq.core.sends import Send
from pocketmq.protocol.bodies.client import HeartbeatData
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.journal_frames import CLOSED, CONNECTED, EXCHANGE, PUSHED, SENDS
from pocketmq.protocol.requests.membership import HeartBeat, LockBatchMq, UnlockBatchMq
from pocketmq.protocol.requests.security import UpdateAndCreateAclConfig
from pocketmq.protocol.rpc_numbers import FIRST_RPC
from pocketmq.protocol.wire.command import ONEWAY_FLAG, Command

from .journal import Journal
from .watch import ReplyBody, Watched, Watcher

DETAIL_BYTES: Final = 64 * 1024
"""Bytes of a body that are recorded."""
_SECRET: Final = frozenset((UpdateAndCreateAclConfig.code,))
"""Requests whose fields hold keys of plain_acl.yml; of bodies the journal keeps only size and checksum anyway."""
_HIDDEN: Final = {"fields": "not recorded"}
_WITH_BODY: Final = frozenset((HeartBeat.code, LockBatchMq.code, UnlockBatchMq.code))
"""Requests whose body says which client sent them and what it subscribes to."""
_SPECIAL: Final = _SECRET | _WITH_BODY


class Recorded:
    """What the journal knows of one connection."""

    __slots__ = ("client_id", "number", "unanswered")

    def __init__(self, number: int) -> None:
        self.number = number
        self.client_id: str | None = None
        self.unanswered: dict[int, tuple[Command, int]] = {}
        """Requests and their times, by the identity of the frame: a peer may use an opaque number twice."""


class JournalWatcher(Watcher):
    """Watches one server for the journal. Added first, it records what the peer sees."""

    sees_raw = True

    def __init__(self, journal: Journal, server_name: str) -> None:
        self._journal = journal
        self._server_name = server_name
        self._connections: dict[Watched, Recorded] = {}

    def opened(self, connection: Watched) -> None:
        recorded = self._connections[connection] = Recorded(self._journal.next_connection())
        recorded.client_id = getattr(connection, "client_id", None)  # a gRPC client says it with each call
        self._journal.add((CONNECTED, time_ns(), recorded.number, self._server_name, connection.peer))

    def closed(self, connection: Watched) -> None:
        recorded = self._connections.pop(connection)
        for command, received_ns in recorded.unanswered.values():
            self._record(recorded, command, received_ns, 0, None, None)
        self._journal.add((CLOSED, time_ns(), recorded.number))

    def received(self, connection: Watched, command: Command) -> bool:
        recorded = self._connections[connection]
        if command.flag & ONEWAY_FLAG:
            self._record(recorded, command, time_ns(), 0, None, None)
        else:
            recorded.unanswered[id(command)] = command, time_ns()
        return False

    def answering(self, connection: Watched, command: Command, reply: Command, body: ReplyBody) -> bool:
        recorded = self._connections[connection]
        unanswered = recorded.unanswered.pop(id(command), None)
        if unanswered is not None:  # a second reply to one request is not recorded
            self._record(recorded, command, unanswered[1], time_ns(), reply, body)
        return False

    def cancelled(self, connection: Watched, command: Command) -> None:
        recorded = self._connections[connection]
        unanswered = recorded.unanswered.pop(id(command), None)
        if unanswered is not None:
            self._record(recorded, command, unanswered[1], 0, None, None)

    def calling(self, connection: Watched, command: Command, body: ReplyBody) -> bool:
        recorded = self._connections[connection]
        self._journal.add(
            (
                PUSHED,
                time_ns(),
                recorded.number,
                recorded.client_id,
                command.code,
                command.fields,
                _digest(body)[0],
            )
        )
        return False

    def exchanged(self, connection: Watched, frames: Sequence[Send], replies: Sequence[bytes]) -> None:
        recorded = self._connections[connection]
        if len(frames) == 1:
            heads, crcs, answers = bytes(frames[0].head), [crc32(frames[0].body)], replies[0]
        else:
            heads = b"".join([send.head for send in frames])
            crcs = [crc32(send.body) for send in frames]
            answers = b"".join(replies)
        self._journal.add((SENDS, time_ns(), recorded.number, recorded.client_id, heads, crcs, answers))

    def _record(
        self,
        recorded: Recorded,
        command: Command,
        received_ns: int,
        answered_ns: int,
        reply: Command | None,
        reply_body: ReplyBody,
    ) -> None:
        code, fields, body, detail = command.code, command.fields, command.body, None
        if code in _SPECIAL or code >= FIRST_RPC:
            detail = self.detail(recorded, command)
            fields = _HIDDEN if code in _SECRET else fields
        size = crc = 0
        if body is not None:
            size, crc = len(body), crc32(body)
        reply_size, reply_crc = (0, 0) if reply_body is None else _digest(reply_body)
        reply_code = remark = reply_fields = None
        if reply is not None:
            reply_code, remark, reply_fields = reply.code, reply.remark, reply.fields
        self._journal.add((
            EXCHANGE, received_ns, answered_ns, recorded.number, recorded.client_id, code, command.opaque,
            command.version, command.language, command.flag & ONEWAY_FLAG != 0, fields, size, crc,
            reply_code, remark, reply_fields, reply_size, reply_crc, detail,
        ))  # fmt: skip

    def detail(self, recorded: Recorded, command: Command) -> str | None:
        """What is recorded of a body that says which client sent it."""
        if command.code not in _WITH_BODY:
            return None
        body = bytes(command.body or b"")[:DETAIL_BYTES]
        if command.code == HeartBeat.code:
            try:
                recorded.client_id = HeartbeatData.decode(body).client_id or recorded.client_id
            except ProtocolError:  # the handler refuses it
                return None
        return body.decode("utf-8", "replace")


def _digest(body: ReplyBody) -> tuple[int, int]:
    """Size and CRC-32 of a body in one piece or several."""
    if body is None:
        return 0, 0
    if isinstance(body, bytes | memoryview):
        return len(body), crc32(body)
    size = crc = 0
    for piece in body:
        size += len(piece)
        crc = crc32(piece, crc)
    return size, crc
