"""The journal (`--journal DIR`) records every request and its reply in rolling files.

    loop thread                                           pocketmq-journal
    request in ... reply out -> packed at once -> [ bounded frame ] -> file, ten times a second

`JournalWatcher` fills it. The other files of this room do not depend on it: a broker without a journal does not import
this file. What an entry contains: `pocketmq.protocol.journal_frames`.

The loop packs each exchange into the current frame as soon as it is answered. Queueing tuples would be cheaper here but
dearer in total: each tuple would survive until the thread runs and be scanned by every garbage collection, and packing
in the thread would still hold the interpreter lock. The thread writes the whole frame.

The broker never waits for this disk. Entries that do not fit the frame are dropped and counted, in the journal and in
the log. If writing fails, the first failure is logged, and entries are dropped and counted until writing works again.
A killed process loses at most the last `WRITE_SECONDS`; readers skip half a frame at the end.

Files are named `<start>-<number>.journal` and have `FILE_BYTES` each; the newest `FILES` of a folder are kept, those of
earlier runs included. The file being written is locked, so that another broker with the same folder keeps it. The bytes
are drawn in `pocketmq.protocol.journal_frames`.
"""

import fcntl
import itertools
import logging
import os
import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import time_ns
from typing import Any, Final
from zlib import crc32

import msgspec
from pocketmq.core.sends import Send
from pocketmq.protocol.bodies.client import HeartbeatData
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.journal_frames import (
    CLOSED,
    CONNECTED,
    DROPPED,
    EXCHANGE,
    PUSHED,
    SENDS,
    SUFFIX,
    encode_head,
    finish_frame,
    new_frame,
    pack_entry,
)
from pocketmq.protocol.requests.membership import HeartBeat, LockBatchMq, UnlockBatchMq
from pocketmq.protocol.requests.security import UpdateAndCreateAclConfig
from pocketmq.protocol.rpc_numbers import FIRST_RPC
from pocketmq.protocol.wire.command import ONEWAY_FLAG, Command

from ..errors import StartError
from .watch import ReplyBody, Watched, Watcher

_log = logging.getLogger("pocketmq.network")

FRAME_ENTRIES: Final = 65536
FRAME_BYTES: Final = 64 * 1024 * 1024
WRITE_SECONDS: Final = 0.1
FILE_BYTES: Final = 64 * 1024 * 1024
FILES: Final = 64
DETAIL_BYTES: Final = 64 * 1024
"""Bytes of a body that are recorded."""
_SECRET: Final = frozenset((UpdateAndCreateAclConfig.code,))
"""Requests whose fields hold keys of plain_acl.yml; of bodies the journal keeps only size and checksum anyway."""
_HIDDEN: Final = {"fields": "not recorded"}
_WITH_BODY: Final = frozenset((HeartBeat.code, LockBatchMq.code, UnlockBatchMq.code))
"""Requests whose body says which client sent them and what it subscribes to."""
_SPECIAL: Final = _SECRET | _WITH_BODY
_NAME: Final = re.compile(rf"(\d{{1,20}})-(\d{{6,10}}){re.escape(SUFFIX)}")


class Journal:
    """One journal of one process, which `about` describes at the start of each file; `start` and `stop` mirror each
    other. The loop calls `add`; the thread does the rest. The current frame and its counts are locked."""

    def __init__(self, folder: Path, about: Mapping[str, object]) -> None:
        self._folder = folder
        self._about = {**about, "processId": os.getpid(), "startedNs": time_ns()}
        self._lock = threading.Lock()
        self._frame = new_frame()
        self._count = 0
        self._dropped = 0
        self.dropped_in_all = 0
        self._next_number = 0
        self.connections = itertools.count(1)
        self._file = -1
        self._size = 0
        self._started_ms = time_ns() // 1_000_000
        self._is_stopping = threading.Event()
        self._has_logged_failure = False
        self._thread = threading.Thread(target=self._run, name="pocketmq-journal", daemon=True)

    def start(self) -> None:
        """Open the first file. Raises `StartError` if that fails."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._roll()
        except OSError as error:
            raise StartError(
                f"cannot write a journal to {self._folder}: {error.strerror or error}"
            ) from error
        self._thread.start()

    def stop(self) -> None:
        self._is_stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self._write()
        self._warn_of(self._dropped)
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def add(self, entry: tuple[Any, ...]) -> None:
        """Pack one entry into the frame; drop it if the frame is full or the entry cannot be packed."""
        with self._lock:
            frame = self._frame
            try:
                if self._count < FRAME_ENTRIES and len(frame) < FRAME_BYTES:
                    frame += pack_entry(entry)
                    self._count += 1
                    return
            except UnicodeEncodeError:  # half a surrogate pair, which JSON can spell
                pass
            self._dropped += 1

    def watcher(self, server_name: str) -> "JournalWatcher":
        return JournalWatcher(self, server_name)

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
            if self._size >= FILE_BYTES:
                self._roll()
            if dropped:
                frame += pack_entry((DROPPED, time_ns(), dropped))
            self._append(finish_frame(frame, count + bool(dropped)))
        except OSError as error:
            with self._lock:
                self._dropped += count + dropped
            if not self._has_logged_failure:
                self._has_logged_failure = True
                _log.error("the journal cannot be written, entries are dropped: %s", error)
            return
        self._has_logged_failure = False
        self._warn_of(dropped)

    def _warn_of(self, dropped: int) -> None:
        if dropped:
            self.dropped_in_all += dropped
            _log.warning("the journal dropped %d entries, %d since the start", dropped, self.dropped_in_all)

    def _append(self, data: bytes | bytearray) -> None:
        """Append a whole frame or nothing: readers could not find a frame behind half of one."""
        try:
            _write_all(self._file, data)
        except OSError:
            os.ftruncate(self._file, self._size)
            raise
        self._size += len(data)

    def _roll(self) -> None:
        """Continue in a new file; if it cannot be opened, the old file stays."""
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
        _lock(file)
        if self._file >= 0:
            os.close(self._file)
        self._file, self._size = file, len(head)
        self._next_number += 1
        for old in _files_of(self._folder)[:-FILES]:
            _delete_unlocked(old)


def _files_of(folder: Path) -> list[Path]:
    """The files of all runs, the oldest first."""
    found = [(_NAME.fullmatch(path.name), path) for path in folder.iterdir()]
    return [path for *_, path in sorted((int(name[1]), int(name[2]), path) for name, path in found if name)]


def _delete_unlocked(path: Path) -> None:
    """Delete a file, unless a broker is writing it."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        if _lock(file):
            path.unlink(missing_ok=True)
    finally:
        os.close(file)


def _lock(file: int) -> bool:
    """Lock a file until it is closed; False if another opened file has the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _write_all(file: int, data: bytes | bytearray) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


# -- what fills it


class Recorded(msgspec.Struct, eq=False):
    """What the journal knows of one connection."""

    number: int
    client_id: str | None = None
    unanswered: dict[int, tuple[Command, int]] = {}
    """Requests and their times, by the identity of the frame: a peer may use an opaque number twice."""


class JournalWatcher(Watcher):
    """Watches one server for the journal. Added first, it records what the peer sees."""

    sees_raw = True

    def __init__(self, journal: Journal, server_name: str) -> None:
        self._journal = journal
        self._server_name = server_name
        self._connections: dict[Watched, Recorded] = {}

    def opened(self, connection: Watched) -> None:
        recorded = self._connections[connection] = Recorded(next(self._journal.connections))
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
        number, client_id, size = recorded.number, recorded.client_id, _digest(body)[0]
        self._journal.add((PUSHED, time_ns(), number, client_id, command.code, command.fields, size))
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
        size, crc = _digest(body)
        reply_size, reply_crc = _digest(reply_body)
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
