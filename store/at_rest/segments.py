"""A store that no process has open, read without changing a byte: no lock file, no new file, nothing cut.

`Segments` is a directory of files named after their first position, as the log and every queue are; the file size is
that of the first file, so no setting is needed. For programs that only read (`check.py`); the broker reads through
`files/mapped_files.py`.
"""

import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from .. import layout
from ..config import QUEUE_UNIT_BYTES
from ..durability.store_lock import refuse_locked
from ..errors import StoreError, system_error
from ..lookup.queue_unit import end_of_units


class Segment(msgspec.Struct, frozen=True):
    """One file: the position of its first byte, and its bytes."""

    path: Path
    base: int
    view: memoryview

    @property
    def end(self) -> int:
        return self.base + len(self.view)


class Segments:
    """`problems` are (path, what is wrong) of files that cannot belong here; those are not among `files`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.files: list[Segment] = []
        self.problems: list[tuple[Path, str]] = []
        self.file_bytes = 0
        for path in _entries(directory, folders=False):
            self._add(path)

    def _add(self, path: Path) -> None:
        if not path.name.isdecimal():
            self.problems.append((path, "only files named by 20 digits belong here"))
            return
        view = map_file(path)
        if not view:
            self.problems.append((path, "is empty"))
            return
        self.file_bytes = self.file_bytes or len(view)
        if len(view) != self.file_bytes:
            self.problems.append((path, f"is {len(view)} bytes long, its neighbours {self.file_bytes}"))
            return
        segment = Segment(path, int(path.name), view)
        if self.files and self.files[-1].end != segment.base:
            missing = self.directory / layout.file_name(self.files[-1].end)
            self.problems.append((missing, "is missing"))
        self.files.append(segment)

    def at(self, position: int) -> Segment | None:
        """The file that holds a position."""
        if not self.files:
            return None
        guess = (position - self.files[0].base) // self.file_bytes
        if 0 <= guess < len(self.files) and self.files[guess].base <= position < self.files[guess].end:
            return self.files[guess]
        return next((file for file in self.files if file.base <= position < file.end), None)

    @property
    def start(self) -> int:
        return self.files[0].base if self.files else 0


def queue_directories(root: Path) -> Iterator[tuple[str, int, Path]]:
    """(topic, queue id, directory) of every queue."""
    for topic in _entries(root / layout.CONSUME_QUEUE, folders=True):
        for queue in _entries(topic, folders=True):
            if queue.name.isdecimal():
                yield topic.name, int(queue.name), queue


def count_units(segment: Segment) -> int:
    """How many units a queue file holds, by the rule of a start."""
    end, _ = end_of_units(lambda start, stop: bytes(segment.view[start:stop]), len(segment.view))
    return end // QUEUE_UNIT_BYTES


def map_file(path: Path) -> memoryview:
    """The bytes of a file, read from disk on access; empty for an empty file. Raises StoreError."""
    try:
        with path.open("rb") as file:
            if not os.fstat(file.fileno()).st_size:
                return memoryview(b"")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise system_error("read", path, error) from error


def refuse_open_store(root: Path) -> None:
    """Raises StoreError if there is no store, StoreLockedError if a store has it open and may change it."""
    if not root.is_dir():
        raise StoreError(f"{root} is not a directory" if root.exists() else f"{root} does not exist")
    if not any((root / name).exists() for name in (layout.COMMIT_LOG, layout.CHECKPOINT, layout.CONFIG)):
        raise StoreError(f"{root} is no store: it has neither commitlog nor checkpoint nor config")
    refuse_locked(root)


def _entries(directory: Path, *, folders: bool) -> list[Path]:
    try:
        with os.scandir(directory) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir() == folders)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise system_error("read", directory, error) from error
