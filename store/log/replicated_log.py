"""The log as it is copied from one broker to another: parts of it read at the master, appended at the slave.

A part is bytes, not records: it begins and ends anywhere within one log file, fillers included, so that both logs
are the same byte for byte. The slave builds its own queues and index from the records that are complete. Official
methods: getCommitLogData, appendToCommitLog. Not here: the bytes on the wire
(`protocol/wire/ha_stream.py`), connections and waiting (`broker/replication_*.py`).

A record whose end is not copied yet has no size in the slave's file: its first four bytes are written last. The CRC of
a record is that of its body, so recovery after a kill would take one without the rest of its properties for a whole
one, and go on copying behind it.
Owner: the event-loop thread.
"""

from typing import Final

from ..errors import StoreError
from ..files.mapped_file import MappedFile
from .commit_log import CommitLog

SIZE_BYTES: Final = 4


class DivergedError(StoreError):
    """Master and slave do not hold the same log; an operator must decide which one is right."""


class ReplicatedLog:
    """Both sides of the copying, over the log of a store that is open."""

    def __init__(self, log: CommitLog) -> None:
        self._log = log
        self._begin = -1
        """Where the record begins that is not whole yet, or the next one; -1 before the first append."""
        self._size = b""
        """What came of its size, at most four bytes: they are not in the file."""

    # The master's side

    @property
    def end(self) -> int:
        return self._log.end

    def first_position(self, reported: int) -> int:
        """Where copying begins to a slave whose log ends at `reported`: there, or for an empty slave (0) at the start
        of the newest file."""
        if reported > 0:
            return reported
        end = self._log.end
        return end - end % self._log.file_bytes

    def read(self, position: int, most_bytes: int) -> memoryview | None:
        """The bytes of the log from `position` on, at most to the end of its file; None if there are none."""
        file = self._log.files.file_at(position)
        if file is None:
            return None
        at = position - file.base
        end = min(at + most_bytes, file.written)
        return file.view[at:end] if at < end else None

    # The slave's side

    def append(self, position: int, data: memoryview) -> None:
        """Append a part that begins at `position`; an empty part makes the first file of an empty log.

        Raises DivergedError if this log does not end at `position`, StoreError if the disk refuses the bytes.
        """
        log = self._log
        files = log.files
        if not files:
            start = position - position % log.file_bytes
            log.files.add_file(start, position - start + len(data)).written = position - start
            log.use_last_file()
        elif position != log.end:
            raise DivergedError(f"the master sends from {position}, our log ends at {log.end}")
        if not data:
            return
        file = files[-1]
        if file.written == file.size:
            file = log.files.add_file(file.base + file.size, len(data))
            log.use_last_file()
        if len(data) > file.size - file.written:
            raise DivergedError(
                f"{len(data)} bytes at {position} reach over the end of {file.path.name}: "
                f"mappedFileSizeCommitLog={log.file_bytes} here is not the master's"
            )
        file.reserve(file.written + len(data))
        self._write(file, position, data)
        file.written += len(data)

    def _write(self, file: MappedFile, position: int, data: memoryview) -> None:
        if self._begin < 0:
            self._begin = position
        memory, base, came = file.memory, file.base, position - self._begin
        if came >= SIZE_BYTES:
            rest = int.from_bytes(self._size) - came
            memory[position - base : position - base + len(data[:rest])] = data[:rest]
            if len(data) < rest:
                return
            memory[self._begin - base : self._begin - base + SIZE_BYTES] = self._size
            self._begin, data = position + rest, data[rest:]
        elif came:
            data = memoryview(self._size + data)
        at = self._begin - base
        whole = _whole_records(data, file.size - at)
        tail = data[whole:]
        memory[at : at + whole] = data[:whole]
        memory[at + whole + SIZE_BYTES : at + len(data)] = tail[SIZE_BYTES:]
        self._begin, self._size = self._begin + whole, bytes(tail[:SIZE_BYTES])


def _whole_records(data: memoryview, room: int) -> int:
    """How many bytes the records take that are whole; all bytes if there is anything but records. `room`: to the end of
    the file."""
    at = 0
    while len(data) - at >= SIZE_BYTES:
        size = int.from_bytes(data[at : at + SIZE_BYTES])
        if not SIZE_BYTES < size <= room - at:
            return len(data)
        if at + size > len(data):
            break
        at += size
    return at
