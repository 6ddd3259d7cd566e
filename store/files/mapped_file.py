"""One file of fixed size, mapped into memory: a segment of the commit log, a queue or the index.

A file is created at its full size, filled with zeros. It takes room on disk in steps, a little ahead of what is
written: a writer reserves room before it writes, so that its bytes lie below `reserved`. A write through a map into a
hole of the file would end the process (SIGBUS) once the disk is full; `reserve` raises an error instead. If the system
cannot reserve (macOS, some network disks) the file counts as reserved, and a full disk still ends the process.

A file is mapped when `map` or `view` is first used, and may be unmapped again (`OpenMaps`). Reads return
memoryviews of the map. Nothing here closes a map: a view keeps its map alive, and dropping the last view releases it,
so a file can be unmapped or deleted while a reply still holds bytes of it.

Owner: the event-loop thread, except `sync`, which the flusher calls. Official class: DefaultMappedFile.
"""

import mmap
import os
import threading
from pathlib import Path
from typing import Final

from ..errors import FileSizeError, StoreError, system_error
from . import disk

try:
    import resource
except ImportError:  # Windows: maps cost no descriptor there
    resource = None  # type: ignore[assignment]

PAGE_BYTES = 4096
_CHUNK_BYTES = 1 << 20
_READ_AHEAD_BYTES = 1 << 20
_ZEROS = bytes(_CHUNK_BYTES)
MOST_LOG_MAPS: Final = 512
_MOST_QUEUE_MAPS: Final = 8192
_FEWEST_QUEUE_MAPS: Final = 64
_SHARE_OF_DESCRIPTORS: Final = 4
_WRITTEN_TO_PASSED: Final = 8
"""Files in use that are kept in one search for a file to unmap."""


class OpenMaps:
    """The files of one kind that are mapped now, oldest map first; at most `most`: 10,000 topics of 8 queues would need
    more maps and descriptors than a process may have.

    A file is mapped when its bytes are first used. Beyond the bound the file that was mapped first is unmapped (first
    in, first out), unless it was written to since; it is mapped again when its bytes are read, which costs some
    microseconds. Nothing is lost by unmapping: written bytes stay in the page cache of the system. Owner: the
    event-loop thread, which alone unmaps, because it may be in the middle of a write. The flusher adds the log file it
    makes ahead.
    """

    __slots__ = ("_lock", "_open", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = threading.RLock()
        self._open: dict[MappedFile, int] = {}
        """With how many bytes were written when it was last looked at."""

    def __len__(self) -> int:
        return len(self._open)

    def add(self, file: "MappedFile", *, evicts: bool = True) -> None:
        """A file was mapped: beyond the bound, unmap the oldest. Without `evicts`, the owner does it at its next."""
        with self._lock:
            self._open[file] = file.written
            while evicts and len(self._open) > self.most:
                self._oldest_idle().unmap()

    def _oldest_idle(self) -> "MappedFile":
        """The oldest file that was not written to since it was last looked at; of the oldest few, if all were."""
        for _ in range(min(_WRITTEN_TO_PASSED, len(self._open) - 2)):
            file, written = next(iter(self._open.items()))
            if file.written == written:
                return file
            del self._open[file]
            self._open[file] = file.written
        return next(iter(self._open))

    def remove(self, file: "MappedFile") -> None:
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


class MappedFile:
    """`base` is the position of the file's first byte in the space of its neighbours; `written` counts from there."""

    __slots__ = (
        "_ahead_from",
        "_ahead_to",
        "_directory",
        "_entry_synced",
        "_maps",
        "_name",
        "_step_bytes",
        "_view",
        "base",
        "memory",
        "reserved",
        "size",
        "written",
    )

    memory: mmap.mmap
    """The map, for writers below `reserved`, where it always exists. Others use `map`."""
    _view: memoryview

    def __init__(
        self,
        directory: Path,
        name: str,
        base: int,
        size: int,
        step_bytes: int,
        maps: OpenMaps | None = None,
        *,
        exists: bool = False,
        evicts: bool = True,
    ) -> None:
        """Open the file, or create it. Raises FileSizeError for an existing file of another length.

        With `exists` the caller has checked name and length: the file is opened when its first byte is needed. Without
        `evicts` no other file is unmapped for it: for a thread that is not the owner.
        """
        self._directory = directory
        self._name = name
        self.base = base
        self.size = size
        self.written = 0
        self.reserved = 0
        """Bytes from the start that have their place on disk; 0 for a file just opened."""
        self._step_bytes = step_bytes
        self._maps = maps
        self._entry_synced = False
        self._ahead_from = self._ahead_to = -1
        if not exists:
            self._open_map(evicts=evicts)

    @property
    def map(self) -> mmap.mmap:
        try:
            return self.memory
        except AttributeError:
            self._open_map()
            return self.memory

    @property
    def view(self) -> memoryview:
        try:
            return self._view
        except AttributeError:
            self._open_map()
            return self._view

    def _open_map(self, *, evicts: bool = True) -> None:
        try:
            with disk.opened(self.path, os.O_RDWR | os.O_CREAT) as descriptor:
                length = os.fstat(descriptor).st_size
                if length == 0:
                    os.ftruncate(descriptor, self.size)
                elif length != self.size:
                    raise FileSizeError(
                        f"{self.path} is {length} bytes long; the configured size is {self.size}"
                    )
                self.memory = mmap.mmap(descriptor, self.size)
        except OSError as error:
            raise system_error("open", self.path, error) from error
        disk.advise(self.memory, "MADV_RANDOM")
        self._view = memoryview(self.memory)
        if self._maps is not None:
            self._maps.add(self, evicts=evicts)

    @property
    def is_mapped(self) -> bool:
        return hasattr(self, "memory")

    def unmap(self) -> None:
        """Drop the map. The next read makes it again, the next write reserves room again."""
        self.reserved = 0
        if self._maps is not None:
            self._maps.remove(self)
        if self.is_mapped:
            del self._view, self.memory

    def read_in_order(self, *, begins: bool) -> None:
        """Advise the system that the file is about to be read from one end to the other, or that this is over."""
        disk.advise(self.map, "MADV_SEQUENTIAL" if begins else "MADV_RANDOM")

    def read_ahead(self, start: int) -> None:
        """Ask the system to fetch the bytes from `start` on, unless it was asked before; does not wait."""
        if self._ahead_from <= start <= self._ahead_to - _READ_AHEAD_BYTES // 2:
            return
        first = start // PAGE_BYTES * PAGE_BYTES
        length = min(_READ_AHEAD_BYTES, self.size - first)
        if length > 0:
            disk.advise(self.map, "MADV_WILLNEED", first, length)
        self._ahead_from, self._ahead_to = start, first + _READ_AHEAD_BYTES

    def read(self, start: int, end: int) -> bytes:
        """A copy of some bytes, without mapping the file for them. Raises StoreError if it cannot be read."""
        if self.is_mapped:
            return bytes(self.view[start:end])
        try:
            with disk.opened(self.path, os.O_RDONLY) as descriptor:
                return os.pread(descriptor, end - start, start)
        except OSError as error:
            raise system_error("read", self.path, error) from error

    @property
    def path(self) -> Path:
        """Made on each call, to save memory: there may be many thousand files."""
        return self._directory / self._name

    @property
    def end(self) -> int:
        """Position behind the last written byte."""
        return self.base + self.written

    def reserve(self, end: int) -> None:
        """Reserve room on disk for all bytes before `end` (counted in the file), rounded up to a step; maps the file.

        Raises DiskFullError, and StoreError for other refusals of the system; then nothing has changed.
        """
        if end <= self.reserved:
            return
        if not self.is_mapped:
            self._open_map()
        start = max(self.reserved, self.written)
        stop = min(-(-end // self._step_bytes) * self._step_bytes, self.size)
        if disk.reserve_blocks is None:
            stop = self.size
        elif stop > start:
            try:
                with disk.opened(self.path, os.O_RDWR) as descriptor:
                    disk.reserve_blocks(descriptor, start, stop - start)
            except OSError as error:
                if error.errno not in disk.CANNOT_RESERVE:
                    act = f"make room for {stop - start} bytes in"
                    raise system_error(act, self.path, error) from error
                stop = self.size
        self.reserved = stop

    def sync(self, descriptor: int | None = None) -> None:
        """Force written bytes to disk, and once the file's directory entry. Does nothing for a deleted file.

        `descriptor` is the file's, if it is open already. Raises DiskFailedError if the disk refuses (see
        `disk.force_file`). Other OSErrors (no descriptor left) may be tried again.
        """
        if disk.FLUSHES_MAPS and (memory := getattr(self, "memory", None)) is not None:
            memory.flush()
        if descriptor is not None:
            disk.force_file(descriptor, self.path)
        else:
            try:
                with disk.opened(self.path, os.O_RDWR) as opened:
                    disk.force_file(opened, self.path)
            except FileNotFoundError:
                return
        if not self._entry_synced:
            disk.force_directory(self._directory)
            self._entry_synced = True

    def open_descriptor(self) -> int:
        """A descriptor of the file, which the caller closes. Raises OSError."""
        return os.open(self.path, os.O_RDWR | getattr(os, "O_BINARY", 0))

    def clear_from(self, position: int) -> None:
        """Zero everything behind `position` (counted in the file), without touching the holes of a sparse file.

        Without this, bytes cut off by recovery would look like records or units again once the file has grown past
        the cut, which is what official brokers risk.
        """
        page_end = min(-(-position // PAGE_BYTES) * PAGE_BYTES, self.size)
        self._clear(position, page_end)
        for start, end in self.written_ranges(page_end):
            self._clear(start, end)

    def _clear(self, start: int, end: int) -> None:
        for at in range(start, end, _CHUNK_BYTES):
            stop = min(at + _CHUNK_BYTES, end)
            zeros = _ZEROS[: stop - at]
            if self.read(at, stop) != zeros:
                self.map[at:stop] = zeros

    def overwrite(self, at: int, data: bytes) -> None:
        """Write bytes that the file has no room for yet, perhaps. Raises OSError where the disk is full."""
        with disk.opened(self.path, os.O_RDWR) as descriptor:
            disk.write_all(descriptor, data, at)

    def written_ranges(self, start: int) -> list[tuple[int, int]]:
        """The parts at or behind `start` that hold data, as far as the file system tells; all of it otherwise."""
        if start >= self.size:
            return []
        with disk.opened(self.path, os.O_RDONLY) as descriptor:
            return disk.written_ranges(descriptor, start, self.size)

    def delete(self) -> None:
        """Remove the file from its directory; views that are still held stay readable."""
        self.path.unlink(missing_ok=True)
        self.unmap()

    def delete_keeping_map(self) -> mmap.mmap | None:
        """As `delete`, but map and blocks stay until the map returned is dropped; None if the file was missing.

        Unmapping a GiB takes tens of milliseconds of processor time, freeing its blocks half a second and more of the
        disk's: the flusher does both.
        """
        try:
            memory = self.map
        except StoreError:
            memory = None
        self.delete()
        return memory
