"""The log as it is copied from one broker to another: parts of it read at the master, appended at the slave.

A part is bytes, not records: it begins and ends anywhere within one log file, fillers included, so that both logs
are the same byte for byte. The slave builds its own queues and index from the records that are complete. Official
methods: getCommitLogData, appendToCommitLog. Not here: the bytes on the wire
(`protocol/wire/ha_stream.py`), connections and waiting (`broker/replication_*.py`).
Owner: the event-loop thread.
"""

from ..errors import StoreError
from .commit_log import CommitLog


class DivergedError(StoreError):
    """Master and slave do not hold the same log; an operator must decide which one is right."""


class ReplicatedLog:
    """Both sides of the copying, over the log of a store that is open."""

    def __init__(self, log: CommitLog) -> None:
        self._log = log

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
        file.memory[file.written : file.written + len(data)] = data
        file.written += len(data)
