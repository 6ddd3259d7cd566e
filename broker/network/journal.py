"""The journal (`--journal DIR`): every request and its answer, appended to rolling files by a thread of its own.

    loop thread                                           pocketmq-journal
    request in ... answer out -> packed at once -> [ bounded frame ] -> file, some times a second

The loop packs each exchange into the frame that is being filled, as it is answered: a queue of tuples would cost less
there, and more in all, for whatever lives until the thread comes is looked at by every garbage collection, and packing
in the thread takes the interpreter from the loop all the same. The thread takes the frame away and writes it. When the
frame is full entries are dropped and counted, in the journal and in the log: the broker never waits for its disk. What
a kill cuts off is at most the last `WRITE_SECONDS` and half a frame, which readers skip. A disk that refuses is logged
once, and entries are dropped and counted until it takes some again. Files are `<start>-<number>.journal`, `FILE_BYTES`
each, the newest `FILES` of them kept. The bytes are drawn in `pocketmq.protocol.journal_frames`. Connections of a
broker with a journal are `JournaledConnection`; without one none of this is imported.
"""

import itertools
import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from pocketmq.protocol.bodies.client import HeartbeatData
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.journal_frames import (
    CLOSED,
    CONNECTED,
    DROPPED,
    EXCHANGE,
    PUSHED,
    SUFFIX,
    encode_head,
    finish_frame,
    new_frame,
    pack_entry,
)
from pocketmq.protocol.wire.command import ONEWAY_FLAG, RESPONSE_FLAG, Body, Command

from ..errors import StartError
from .connection import Connection

if TYPE_CHECKING:
    import asyncio

    from .role import Role

_log = logging.getLogger("pocketmq.network")

QUEUE_ENTRIES: Final = 65536
QUEUE_BYTES: Final = 64 * 1024 * 1024
WRITE_SECONDS: Final = 0.1
FILE_BYTES: Final = 64 * 1024 * 1024
FILES: Final = 64
DETAIL_BYTES: Final = 64 * 1024
_SECRET: Final = frozenset((50,))
"""Requests whose fields hold keys (plain_acl.yml); of bodies only size and digest are kept anyway."""
_HIDDEN: Final = {"fields": "not recorded"}
_TELLING: Final = frozenset((34, 41, 42))
"""Requests whose body says who a client is and what it wants: heartbeat, lock, unlock."""
_TOLD_OTHERWISE: Final = _SECRET | _TELLING


class Journal:
    """One journal of one process. `start` and `stop` mirror each other; `add` is the loop's, the rest the thread's, and
    the frame being filled, with its counts, belongs to whoever holds the lock."""

    def __init__(
        self,
        folder: Path,
        about: dict[str, Any],
        *,
        queue_entries: int = QUEUE_ENTRIES,
        file_bytes: int = FILE_BYTES,
    ) -> None:
        self._folder = folder
        self._about = about
        self._queue_entries = queue_entries
        self._file_bytes = file_bytes
        self._lock = threading.Lock()
        self._frame = new_frame()
        self._count = 0
        self._dropped = 0
        self.dropped_in_all = 0
        self._next_number = 0
        self._connections = itertools.count(1)
        self._file = -1
        self._size = 0
        self._names: list[Path] = []
        self._started_ms = time_ns() // 1_000_000
        self._is_stopping = threading.Event()
        self._has_complained = False
        self._thread = threading.Thread(target=self._run, name="pocketmq-journal", daemon=True)

    def start(self) -> None:
        """Open the first file. `StartError` where that cannot be."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._roll()
        except OSError as error:
            raise StartError(
                f"cannot write a journal to {self._folder}: {error.strerror or error}"
            ) from error
        self._thread.start()

    def stop(self) -> None:
        """Write what waits and close."""
        self._is_stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self._write()
        self._tell(self._dropped)
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def add(self, entry: tuple[Any, ...]) -> None:
        """Pack one entry into the frame, or drop it where that is full, or it cannot be packed."""
        with self._lock:
            frame = self._frame
            end = len(frame)
            if self._count >= self._queue_entries or end >= QUEUE_BYTES:
                self._dropped += 1
                return
            try:
                pack_entry(entry, frame, -1)
            except UnicodeEncodeError:  # half a surrogate pair, which JSON can spell
                del frame[end:]
                self._dropped += 1
                return
            self._count += 1

    def next_connection(self) -> int:
        return next(self._connections)

    # -- the thread

    def _run(self) -> None:
        while not self._is_stopping.wait(WRITE_SECONDS):
            self._write()

    def _write(self) -> None:
        with self._lock:
            frame, count, dropped = self._frame, self._count, self._dropped
            if not count and not dropped:
                return
            self._frame, self._count, self._dropped = new_frame(), 0, 0
        try:
            if self._size >= self._file_bytes:
                self._roll()
            if dropped:
                pack_entry((DROPPED, time_ns(), dropped), frame, -1)
            self._append(finish_frame(frame, count + bool(dropped)))
        except OSError as error:
            with self._lock:
                self._dropped += count + dropped
            if not self._has_complained:
                self._has_complained = True
                _log.error("the journal cannot be written, entries are dropped: %s", error)
            return
        self._has_complained = False
        self._tell(dropped)

    def _tell(self, dropped: int) -> None:
        if dropped:
            self.dropped_in_all += dropped
            _log.warning(
                "the journal could not follow: %d entries dropped, %d so far", dropped, self.dropped_in_all
            )

    def _append(self, data: bytes | bytearray) -> None:
        """Behind what is there, or not at all: half a frame would hide all that come after it."""
        try:
            _write_all(self._file, data)
        except OSError:
            os.ftruncate(self._file, self._size)
            raise
        self._size += len(data)

    def _roll(self) -> None:
        """Go on in a new file; where that cannot be, the old one stays."""
        path = self._folder / f"{self._started_ms}-{self._next_number:06}{SUFFIX}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        file = os.open(path, flags, 0o644)
        head = encode_head({**self._about, "fileStartedNs": time_ns()})
        try:
            _write_all(file, head)
        except OSError:
            os.close(file)
            path.unlink()
            raise
        if self._file >= 0:
            os.close(self._file)
        self._file, self._size = file, len(head)
        self._next_number += 1
        self._names.append(path)
        while len(self._names) > FILES:
            self._names.pop(0).unlink(missing_ok=True)


def _write_all(file: int, data: bytes | bytearray) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


class JournaledConnection(Connection):
    """A connection that tells the journal of everything that passes.

    What is called for each message names its base, which is quicker than `super()`.
    """

    def __init__(self, role: "Role", journal: Journal) -> None:
        super().__init__(role)
        self._journal = journal
        self._server_name = role.handlers.name
        self._number = journal.next_connection()
        self._client_id: str | None = None
        self._now: Command | None = None
        self._now_ns = 0
        """The request in whose handler we are, with its time, until it is answered."""
        self._asked: dict[int, tuple[Command, int]] = {}
        """Requests that are answered later, by opaque."""

    def connection_made(self, transport: "asyncio.BaseTransport") -> None:
        super().connection_made(transport)
        self._journal.add((CONNECTED, time_ns(), self._number, self._server_name, self.peer))

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for command, received_ns in self._asked.values():
            self._note(command, received_ns, 0, None, None)
        self._asked.clear()
        self._journal.add((CLOSED, time_ns(), self._number))

    def _request_received(self, command: Command) -> None:
        if command.flag & ONEWAY_FLAG:
            self._note(command, time_ns(), 0, None, None)
            Connection._request_received(self, command)
            return
        self._now, self._now_ns = command, time_ns()
        Connection._request_received(self, command)
        if self._now is command:  # no answer yet
            self._asked[command.opaque] = command, self._now_ns
            self._now = None

    def write(self, command: Command, body: Body | Sequence[Body] | None = None) -> None:
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
                self._note(now, self._now_ns, time_ns(), command, body)
            elif (asked := self._asked.pop(command.opaque, None)) is not None:
                self._note(*asked, time_ns(), command, body)
        Connection.write(self, command, body)

    def _note(
        self,
        command: Command,
        received_ns: int,
        answered_ns: int,
        reply: Command | None,
        reply_body: Body | Sequence[Body] | None,
    ) -> None:
        code, fields, body, detail = command.code, command.fields, command.body, None
        if code in _TOLD_OTHERWISE:
            detail = self._detail(command) if code in _TELLING else None
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
        if command.code == 34:
            try:
                self._client_id = HeartbeatData.decode(body).client_id or self._client_id
            except ProtocolError:  # the handler answers that
                return None
        return body.decode("utf-8", "replace")


def _digest(body: Body | Sequence[Body] | None) -> tuple[int, int]:
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


def journal_of(folder: Path, *, broker_name: str, cluster: str, emulate: int) -> Journal:
    """The journal of a broker that starts now."""
    about = {
        "brokerName": broker_name,
        "cluster": cluster,
        "emulate": emulate,
        "processId": os.getpid(),
        "startedNs": time_ns(),
    }
    return Journal(folder, about)
