"""A bound on how many files are mapped at once: 10,000 topics of 8 queues would need more maps and descriptors than
a process may have.

A file is mapped when its bytes are first used. Beyond the bound the file that was mapped first is unmapped (first in,
first out), unless it was written to since; it is mapped again when its bytes are read, which costs some microseconds.
Nothing is lost by unmapping: written bytes stay in the system's page cache, and views that are still held keep their
map alive. Not here: the list of files (`mapped_files.py`). Owner: the event-loop thread, which alone unmaps, because it
may be in the middle of a write. The flusher adds the log file it makes ahead.
"""

import threading
from typing import Final, Protocol

try:
    import resource
except ImportError:  # Windows: maps cost no descriptor there
    resource = None  # type: ignore[assignment]

MOST_LOG_MAPS: Final = 512
_MOST_QUEUE_MAPS: Final = 8192
_FEWEST_QUEUE_MAPS: Final = 64
_SHARE_OF_DESCRIPTORS: Final = 4
_WRITTEN_TO_PASSED: Final = 8
"""Files in use that are kept in one search for a file to unmap."""


class Mapped(Protocol):
    """What can be unmapped: a `MappedFile`."""

    written: int

    def unmap(self) -> None: ...


class OpenMaps:
    """The files of one kind that are mapped now, oldest map first; at most `most`."""

    __slots__ = ("_lock", "_open", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = threading.RLock()
        self._open: dict[Mapped, int] = {}
        """With how many bytes were written when it was last looked at."""

    def __len__(self) -> int:
        return len(self._open)

    def add(self, file: Mapped, *, evicts: bool = True) -> None:
        """A file was mapped: beyond the bound, unmap the oldest. Without `evicts`, the owner does it at its next."""
        with self._lock:
            self._open[file] = file.written
            while evicts and len(self._open) > self.most:
                self._oldest_idle().unmap()

    def _oldest_idle(self) -> Mapped:
        """The oldest file that was not written to since it was last looked at; of the oldest few, if all were."""
        for _ in range(min(_WRITTEN_TO_PASSED, len(self._open) - 2)):
            file, written = next(iter(self._open.items()))
            if file.written == written:
                return file
            del self._open[file]
            self._open[file] = file.written
        return next(iter(self._open))

    def remove(self, file: Mapped) -> None:
        with self._lock:
            self._open.pop(file, None)


def most_queue_maps() -> int:
    """How many queue files may be mapped: each map holds a descriptor, and connections need theirs."""
    if resource is None:
        return _MOST_QUEUE_MAPS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MOST_QUEUE_MAPS
    return min(max(soft // _SHARE_OF_DESCRIPTORS, _FEWEST_QUEUE_MAPS), _MOST_QUEUE_MAPS)
