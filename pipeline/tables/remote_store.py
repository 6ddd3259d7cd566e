"""Stores behind a URL (s3://, gs://, hdfs://, file://) as the tables of a folder.

What planning needs is copied once, when a table is first read: the sizes of the log files, the consume queues and the
offsets. Each task then copies the bytes of its part of the log (`files/remote_copies.py`), reads them as it reads a
folder, and removes them. The copies are those of one moment: later messages are not read.
"""

import functools
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ..errors import PathError
from ..files.log_files import LogFile
from ..files.remote_copies import Location, copy_plan, naming_originals, temporary_copies, with_urls
from .aggregate_tables import HoleRunsTask
from .queue_tables import OffsetsTask, UnitRowsTask
from .store_table import HoleTask, UnitsTask

GAP_BYTES: Final = 1 << 20
"""Records that are less apart are copied together with what lies between them."""
OFFSETS: Final = "config/consumerOffset.json"


class RemotePlan:
    """A folder with what planning needs of a store, made on its first use and removed with this object."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._folder: Path | None = None

    def folder(self) -> Path:
        """`PathError` if there is no store behind the URL."""
        if self._folder is None:
            location = _location(self.url)
            folder = Path(tempfile.mkdtemp(prefix="pocketmq-plan-"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            try:
                copy_plan(location, folder)
                if location.has(OFFSETS):
                    location.copy_whole(OFFSETS, folder)
            except OSError as error:  # of the file system behind the URL
                raise PathError(f"{location.url} cannot be read: {error}") from error
            if not (folder / "commitlog").is_dir():
                raise PathError(f"{location.url} has no folder commitlog, and so is no store")
            self._folder = folder
        return self._folder


class RemoteTable:
    """A table of tasks of a store behind a URL. `of_folder` makes the same table of a folder."""

    def __init__(self, url: str, of_folder: Callable[[str], Any]) -> None:
        self._plan = RemotePlan(url)
        self._of_folder = of_folder
        self.schema = of_folder("").schema

    def _table(self) -> Any:
        return self._of_folder(str(self._plan.folder()))

    def check(self) -> None:
        """As the table of the folder, and `PathError` if there is no store behind the URL."""
        with naming_originals(self._plan.folder(), _location(self._plan.url).url):
            self._table().check()

    def tasks(self, condition: Any) -> list[Any]:
        """Those of the folder, each of which copies first what it reads."""
        folder = self._plan.folder()
        with naming_originals(folder, _location(self._plan.url).url):
            tasks = self._table().tasks(condition)
        return [RemoteTask(self._plan.url, str(folder), task) for task in tasks]


class RemoteTask(msgspec.Struct, frozen=True):
    """A task whose part of the log is behind a URL; `plan_folder` is where its files seem to be."""

    url: str
    plan_folder: str
    task: Any

    def batches(self, names: Sequence[str], condition: Any) -> Iterator[Any]:
        location = _location(self.url)
        with temporary_copies() as folder, naming_originals(folder, location.url):
            task = self._copied(location, folder)
            for batch in task.batches(names, condition):
                yield with_urls(batch, str(folder), location.url)

    def _copied(self, location: Location, folder: Path) -> Any:
        """The task over copies of the bytes that it reads."""
        task = self.task
        if isinstance(task, OffsetsTask):
            return OffsetsTask(str(location.copy_whole(OFFSETS, folder)))
        if isinstance(task, UnitRowsTask):
            queue = Path(task.split.folder).relative_to(self.plan_folder).as_posix()
            for name in location.sizes(queue):
                location.copy_whole(name, folder)
            return UnitRowsTask(msgspec.structs.replace(task.split, folder=str(folder / queue)))
        if isinstance(task, HoleTask | HoleRunsTask):
            return msgspec.structs.replace(task, file=self._moved(task.file, folder)[1])
        if isinstance(task, UnitsTask):
            name, file = self._moved(task.file, folder)
            for begin, end in joined_ranges(task.positions.tolist(), task.sizes.tolist()):
                location.copy(name, Path(file.path), begin, min(end, file.size))
            _extend(Path(file.path), file.size)
            return msgspec.structs.replace(task, file=file)
        split = task.split
        name, file = self._moved(split.file, folder)
        location.copy_split(name, Path(file.path), split.begin, split.end, file.size, file.base)
        return msgspec.structs.replace(task, split=msgspec.structs.replace(split, file=file))

    def _moved(self, file: LogFile, folder: Path) -> tuple[str, LogFile]:
        """(the file's name below the URL, the file as its copy will be)."""
        name = Path(file.path).relative_to(self.plan_folder)
        return name.as_posix(), msgspec.structs.replace(file, path=str(folder / name))


def joined_ranges(positions: Sequence[int], sizes: Sequence[int]) -> list[tuple[int, int]]:
    """[begin, end) of records at rising positions; those that are less than `GAP_BYTES` apart are joined."""
    ranges: list[tuple[int, int]] = []
    for position, size in zip(positions, sizes, strict=True):
        if ranges and position - ranges[-1][1] < GAP_BYTES:
            ranges[-1] = (ranges[-1][0], max(ranges[-1][1], position + size))
        else:
            ranges.append((position, position + size))
    return ranges


def _extend(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.truncate(size)


@functools.lru_cache(maxsize=16)
def _location(url: str) -> Location:
    """One connection for all tasks of a process."""
    return Location(url, option="path")
