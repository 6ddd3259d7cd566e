"""Mapped files of one size that together form one space of positions: the commit log, or one consume queue.

    00000000000000000000      00000000000000000300      00000000000000000600
    +-----------------------+ +-----------------------+ +-----------------------+
    | base 0, full          | | base 300, full        | | base 600, written to  |
    +-----------------------+ +-----------------------+ +-----------------------+

A file is named after its base, in 20 digits. The first need not be 0. Official class: MappedFileQueue.
Owner: the event-loop thread; the flusher calls `flush` and `prepare_next` only.
"""

import logging
import mmap
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import overload

from .. import layout
from ..errors import FileSizeError, StoreDamagedError, StoreError, system_error
from . import disk
from .mapped_file import PAGE_BYTES, MappedFile, OpenMaps

logger = logging.getLogger(__name__)

_making = threading.Lock()
"""The lock of all who share one."""


class MappedFiles(Sequence[MappedFile]):
    """A sequence of files in order of position; only the last one is written to."""

    __slots__ = (
        "_descriptor",
        "_files",
        "_forced",
        "_making",
        "_maps",
        "_new_entries",
        "_prepared",
        "_step_bytes",
        "directory",
        "file_bytes",
        "flushed",
    )

    def __init__(
        self,
        directory: Path,
        file_bytes: int,
        step_bytes: int,
        maps: OpenMaps | None = None,
        making: threading.Lock = _making,
    ) -> None:
        """Files of `file_bytes` each, which reserve room on disk in steps of `step_bytes`.

        `making` is held while a file is made: owner and flusher must not both use or delete the file made ahead of
        time. Who has files made ahead needs a lock of their own, because the disk may let the flusher wait with it.
        """
        self.directory = directory
        self.file_bytes = file_bytes
        self._step_bytes = step_bytes
        self._maps = maps
        self._files: list[MappedFile] = []
        self.flushed = 0
        """Everything before this position is on disk."""
        self._making = making
        self._new_entries: tuple[Path, ...] = ()
        """Folders with a new folder that leads here, which are to be forced."""
        self._prepared: MappedFile | None = None
        """The file that will follow the last one, made ahead of time."""
        self._forced: MappedFile | None = None
        """The file that `flush` left open, and its descriptor. Both belong to the flusher."""
        self._descriptor = -1

    def load(self, *, may_lack_files: bool = True) -> None:
        """List the directory. Each file counts as full; recovery then sets the end.

        Raises FileSizeError or StoreDamagedError where an official broker refuses to start, and, unless
        `may_lack_files`, for a file missing between two others. Files with a name that begins with a dot (made by file
        managers and network disks) are left alone, as is any that cannot be one of these where files may lack.
        """
        try:
            with os.scandir(self.directory) as entries:
                found = sorted((entry.name, entry) for entry in entries if not entry.is_dir())
        except FileNotFoundError:
            return
        except NotADirectoryError:
            raise StoreDamagedError(f"{self.directory} is not a directory") from None
        last_name = max((name for name, _ in found if name.isdecimal()), default="")
        for name, entry in found:
            if not name.isdecimal():
                if name.startswith(".") or may_lack_files:
                    logger.warning("%s does not belong here: left alone", self.directory / name)
                    continue
                raise StoreDamagedError(
                    f"{self.directory / name} does not belong here: only files named by 20 digits do"
                )
            length = entry.stat().st_size
            if length == 0 and name == last_name:
                # Made by a process that died before it could set the length: nothing was ever in it.
                (self.directory / name).unlink()
                continue
            if length != self.file_bytes:
                raise FileSizeError(
                    f"{self.directory / name} is {length} bytes long; the configured size is {self.file_bytes}"
                )
            self._add_loaded(self._file(name, exists=True), may_lack_files=may_lack_files)

    def _add_loaded(self, file: MappedFile, *, may_lack_files: bool) -> None:
        file.written = self.file_bytes
        following = self._files[-1].base + self.file_bytes if self._files else file.base
        if file.base % self.file_bytes or following != file.base:
            missing = self.directory / layout.file_name(following)
            if not may_lack_files:
                raise StoreDamagedError(
                    f"{missing} is missing: put it back, or move {file.path} and later files away"
                )
            logger.warning("a file is missing between %s and %s", missing, file.path)
        self._files.append(file)

    def __iter__(self) -> Iterator[MappedFile]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    @overload
    def __getitem__(self, number: int) -> MappedFile: ...
    @overload
    def __getitem__(self, number: slice) -> list[MappedFile]: ...
    def __getitem__(self, number: int | slice) -> MappedFile | list[MappedFile]:
        return self._files[number]

    def from_position(self, position: int) -> list[MappedFile]:
        """The files that end behind a position, the one that holds it first."""
        return [file for file in self._files if file.base + file.size > position]

    def gap(self) -> int:
        """Number of the first file that does not begin where the one before it ends; 0 without a gap."""
        pairs = zip(self._files, self._files[1:], strict=False)
        return next(
            (n for n, (file, following) in enumerate(pairs, 1) if following.base != file.base + file.size), 0
        )

    def delete(self, first: int, end: int) -> None:
        """Delete the files with these numbers, from `first` up to and without `end`."""
        for file in self._files[first:end]:
            file.delete()
        del self._files[first:end]

    @property
    def start(self) -> int:
        """Base of the first file; -1 without files."""
        return self._files[0].base if self._files else -1

    @property
    def end(self) -> int:
        """Position behind the last written byte; 0 without files."""
        return self._files[-1].end if self._files else 0

    def file_at(self, position: int) -> MappedFile | None:
        """The file whose range holds `position`, written or not."""
        files = self._files
        if not files:
            return None
        index = (position - files[0].base) // self.file_bytes
        if 0 <= index < len(files):
            file = files[index]
            if 0 <= position - file.base < self.file_bytes:
                return file
        # Only a directory with a gap gets here with a position inside the space.
        return next((file for file in files if 0 <= position - file.base < self.file_bytes), None)

    def add_file(self, base: int, room_bytes: int) -> MappedFile:
        """Create the next file with room for its first `room_bytes`. Raises StoreError when the system refuses (disk
        full, too many open files); then no file was made."""
        self._make_directory()
        with self._making:
            file, self._prepared = self._prepared, None
            if file is None or file.base != base:
                file = self._file(layout.file_name(base))
            try:
                file.reserve(room_bytes)
            except StoreError:
                file.delete()
                raise
            self._files.append(file)
        return file

    def _make_directory(self) -> None:
        try:
            self._new_entries += tuple(disk.new_directories(self.directory))
        except OSError as error:
            raise system_error("make", self.directory, error) from error

    def _file(self, name: str, *, exists: bool = False, evicts: bool = True) -> MappedFile:
        return MappedFile(
            self.directory,
            name,
            int(name),
            self.file_bytes,
            self._step_bytes,
            self._maps,
            exists=exists,
            evicts=evicts,
        )

    def prepare_next(self) -> None:
        """Make the next file once the last one is half full, so that no append waits for the disk.

        Called by the flusher. Raises StoreError if the system refuses; the append that needs the file then makes it.
        """
        with self._making:
            last = self._files[-1] if self._files else None
            if last is None or last.written * 2 < last.size:
                return
            self._prepare(last.base + self.file_bytes)

    def prepare_first(self) -> None:
        """Make the file that begins at 0 ahead of time, if there is no file. Raises StoreError."""
        if not self._files:
            self._make_directory()
            with self._making:
                self._prepare(0)

    def _prepare(self, base: int) -> None:
        if self._prepared is not None and self._prepared.base == base:
            return
        file = self._file(layout.file_name(base), evicts=False)
        try:
            file.reserve(1)
        except StoreError:
            file.delete()
            raise
        self._prepared = file

    def drop_prepared(self) -> None:
        """Delete the file made ahead of time, if it was not used. Call it after the flusher has stopped."""
        file, self._prepared = self._prepared, None
        if file is not None:
            file.delete()

    def truncate(self, position: int) -> None:
        """Make `position` the end: later files are deleted, bytes behind the end are zeroed."""
        while self._files and self._files[-1].base > position:
            self._files.pop().delete()
        if self._files and self._files[-1].base + self.file_bytes >= position:
            last = self._files[-1]
            last.written = position - last.base
            last.clear_from(last.written)
        self.flushed = min(self.flushed, position)

    def delete_first(self) -> None:
        """Delete the oldest file. Raises IndexError without files."""
        self._files.pop(0).delete()

    def delete_first_keeping_map(self) -> mmap.mmap | None:
        """As `delete_first`; the disk has the space once the map returned is dropped."""
        return self._files.pop(0).delete_keeping_map()

    def count_as_unforced(self) -> None:
        """Another process wrote these files and died: nothing is sure to be on disk, neither names nor folders."""
        self.flushed = max(self.start, 0)
        self._new_entries = self.directory.parent, self.directory.parent.parent

    def delete_all(self) -> None:
        while self._files:
            self._files.pop().delete()
        self.flushed = 0

    def flush(self, least_pages: int, *, leave_open: bool = False) -> bool:
        """Force written bytes to disk; True if something was. Called by the flusher. Raises OSError.

        The page rule is the official one: a full file always, else only when `least_pages` pages wait; 0 means any
        byte. Files before the flushed position are not touched. With `leave_open` the file that was forced last
        stays open for the next call, until `close_forced`: opening and closing it give the interpreter lock away twice.
        """
        worked = False
        for file in tuple(self._files):
            end = file.end
            if end <= self.flushed:
                continue
            full = file.written == file.size
            if not full and end // PAGE_BYTES - self.flushed // PAGE_BYTES < least_pages:
                break
            file.sync(self._descriptor_of(file) if leave_open else None)
            while self._new_entries:
                disk.force_directory(self._new_entries[0])
                self._new_entries = self._new_entries[1:]
            self.flushed = min(end, self.end)  # the owner may have shortened the files meanwhile
            worked = True
        return worked

    def _descriptor_of(self, file: MappedFile) -> int | None:
        """None if the file was deleted meanwhile."""
        if self._forced is not file:
            self.close_forced()
            try:
                self._descriptor = file.open_descriptor()
            except FileNotFoundError:
                return None
            self._forced = file
        return self._descriptor

    def close_forced(self) -> None:
        """Close the file that `flush` left open, if there is one."""
        if self._forced is not None:
            self._forced = None
            os.close(self._descriptor)
