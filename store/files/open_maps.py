"""A bound on how many files are mapped at once: 10,000 topics of 8 queues would need more maps and descriptors than
a process may have.

A file is mapped when its bytes are first used. Beyond the bound the file that was mapped longest ago is unmapped;
it is mapped again when its bytes are read, which costs some microseconds. Nothing is lost by unmapping: written bytes
stay in the system's page cache, and views that are still held keep their map alive. Not here: the list of files
(`mapped_files.py`). Owner: the event-loop thread; the flusher adds the log file it makes ahead.
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


class Mapped(Protocol):
    """What can be unmapped: a `MappedFile`."""

    def unmap(self) -> None: ...


class OpenMaps:
    """The files of one kind that are mapped now, oldest map first; at most `most`."""

    __slots__ = ("_lock", "_open", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = threading.RLock()
        self._open: dict[Mapped, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, file: Mapped) -> None:
        """A file was mapped: beyond the bound, unmap the oldest."""
        with self._lock:
            self._open[file] = None
            if len(self._open) > self.most:
                next(iter(self._open)).unmap()

    def closed(self, file: Mapped) -> None:
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
