"""A connection that records in the journal every request with its reply, and every frame the server sends by itself.

Only a server with a journal makes such connections. What an entry contains: `pocketmq.protocol.journal_frames`.
"""

import asyncio
from collections.abc import Sequence
from time import time_ns
from typing import Final
from zlib import crc32

from pocketmq.protocol.bodies.client import HeartbeatData
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.journal_frames import CLOSED, CONNECTED, EXCHANGE, PUSHED
from pocketmq.protocol.requests.membership import HeartBeat, LockBatchMq, UnlockBatchMq
from pocketmq.protocol.requests.security import UpdateAndCreateAclConfig
from pocketmq.protocol.wire.command import ONEWAY_FLAG, RESPONSE_FLAG, Command, RawBody

from .connection import Connection
from .journal import Journal
from .role import Role

DETAIL_BYTES: Final = 64 * 1024
"""Bytes of a body that are recorded."""
_SECRET: Final = frozenset((UpdateAndCreateAclConfig.code,))
"""Requests whose fields hold keys of plain_acl.yml; of bodies the journal keeps only size and checksum anyway."""
_HIDDEN: Final = {"fields": "not recorded"}
_WITH_BODY: Final = frozenset((HeartBeat.code, LockBatchMq.code, UnlockBatchMq.code))
"""Requests whose body says which client sent them and what it subscribes to."""
_SPECIAL: Final = _SECRET | _WITH_BODY


class JournaledConnection(Connection):
    """Methods that run once a message call their base class by name, which is quicker than `super()`."""

    def __init__(self, role: Role, journal: Journal) -> None:
        super().__init__(role)
        self._journal = journal
        self._server_name = role.handlers.name
        self._number = journal.next_connection()
        self._client_id: str | None = None
        self._now: Command | None = None
        self._now_ns = 0
        """The request whose handler runs now, and its time, until it is answered."""
        self._held: dict[int, tuple[Command, int]] = {}
        """Requests whose handler returned without a reply, by opaque number."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._journal.add((CONNECTED, time_ns(), self._number, self._server_name, self.peer))

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for command, received_ns in self._held.values():
            self._record(command, received_ns, 0, None, None)
        self._held.clear()
        self._journal.add((CLOSED, time_ns(), self._number))

    def _request_received(self, command: Command) -> None:
        if command.flag & ONEWAY_FLAG:
            self._record(command, time_ns(), 0, None, None)
            Connection._request_received(self, command)
            return
        self._now, self._now_ns = command, time_ns()
        Connection._request_received(self, command)
        if self._now is command:  # no answer yet
            self._held[command.opaque] = command, self._now_ns
            self._now = None

    def write(self, command: Command, body: RawBody | Sequence[RawBody] | None = None) -> None:
        if not command.flag & RESPONSE_FLAG:
            size = _digest(body)[0]
            pushed = (
                PUSHED,
                time_ns(),
                self._number,
                self._client_id,
                command.code,
                command.fields,
                size,
            )
            self._journal.add(pushed)
        else:
            now = self._now
            if now is not None and now.opaque == command.opaque:
                self._now = None
                self._record(now, self._now_ns, time_ns(), command, body)
            elif (held := self._held.pop(command.opaque, None)) is not None:
                self._record(*held, time_ns(), command, body)
        Connection.write(self, command, body)

    def _record(
        self,
        command: Command,
        received_ns: int,
        answered_ns: int,
        reply: Command | None,
        reply_body: RawBody | Sequence[RawBody] | None,
    ) -> None:
        code, fields, body, detail = command.code, command.fields, command.body, None
        if code in _SPECIAL:
            detail = self._detail(command) if code in _WITH_BODY else None
            fields = _HIDDEN if code in _SECRET else fields
        size = crc = 0
        if body is not None:
            size, crc = len(body), crc32(body)
        reply_size, reply_crc = (0, 0) if reply_body is None else _digest(reply_body)
        reply_code = remark = reply_fields = None
        if reply is not None:
            reply_code, remark, reply_fields = reply.code, reply.remark, reply.fields
        self._journal.add((
            EXCHANGE, received_ns, answered_ns, self._number, self._client_id, code, command.opaque, command.version,
            command.language, command.flag & ONEWAY_FLAG != 0, fields, size, crc,
            reply_code, remark, reply_fields, reply_size, reply_crc, detail,
        ))  # fmt: skip

    def _detail(self, command: Command) -> str | None:
        body = bytes(command.body or b"")[:DETAIL_BYTES]
        if command.code == HeartBeat.code:
            try:
                self._client_id = HeartbeatData.decode(body).client_id or self._client_id
            except ProtocolError:  # the handler refuses it
                return None
        return body.decode("utf-8", "replace")


def _digest(body: RawBody | Sequence[RawBody] | None) -> tuple[int, int]:
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
