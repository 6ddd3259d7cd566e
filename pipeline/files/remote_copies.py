"""Files that must not be mapped into memory: in an object store, or on a network file system. No Spark.

A mapped file on NFS that its broker deletes kills the process that reads it, and an object store has nothing to map.
So a location given as a URL is read in windows, with plain reads, into sparse files of a temporary folder. Each copy
has the size and the name of its original, and only the bytes that a task needs. Readers of stores then read the copy.

    s3://bucket/store  gs://bucket/store  hdfs://host/store      through `pyarrow.fs`
    file:///mnt/nfs/store                                        a folder, with reads instead of mapping
"""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import fs

from ..errors import CorruptStoreError, OptionError, PathError
from ..records.boundaries import find_record
from .consume_queues import known_log_end, queue_splits
from .log_files import LogFile, log_files
from .queue_index import uncovered_parts

WINDOW_BYTES: Final = 16 * 1024 * 1024
"""Bytes of one read."""
FIRST_WINDOW_BYTES: Final = 1024 * 1024
"""How far after a split the end of its last record is searched at first."""
UNCOVERED_BYTES: Final = 16 * 1024 * 1024
"""Bytes of the log that no queue covers: with more of them, only a scan of the whole log finds what they hold."""
_SPARK_SCHEMES: Final = {"s3a": "s3", "s3n": "s3"}


def is_url(location: str) -> bool:
    return "://" in location


def shown_url(url: str) -> str:
    """A location as it may be shown: without user, keys and parameters."""
    scheme, separator, rest = url.partition("://")
    place = rest.partition("?")[0].rstrip("/")
    server = place.partition("/")[0]
    has_port = server.rpartition(":")[2].isdigit()
    # A URL with an unescaped slash in its key is wrong, but it is shown in the error message.
    if "@" in server or ("@" in place and ":" in server and not has_port):
        place = place.partition("@")[2]
    return f"{scheme}{separator}{place}"


def file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it. `OptionError` if no file system knows the URL."""
    scheme, _, rest = url.partition("://")
    asked = f"{_SPARK_SCHEMES.get(scheme, scheme)}://{rest}"
    try:
        files, path = fs.FileSystem.from_uri(asked)
    except (pa.ArrowInvalid, OSError) as error:
        shown = shown_url(url)
        raise OptionError(f"{shown} cannot be opened: {str(error).replace(asked, shown)}") from None
    return files, path


class Location:
    """A folder behind a URL. `OptionError` if no file system knows the URL."""

    def __init__(self, url: str, *, option: str = "option path") -> None:
        """`option` is how an error names the location."""
        self._option = option
        try:
            self._files, self._root = file_system(url)
        except OptionError as error:
            raise OptionError(f"{option}: {error}") from error
        self.url = shown_url(url)
        """The location without keys."""
        self._root = self._root.rstrip("/")

    def sizes(self, folder: str) -> dict[str, int]:
        """The files below a folder, as paths relative to the location, with their sizes; none if it does not exist."""
        selector = fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True, recursive=True)
        return {
            str(info.path)[len(self._root) + 1 :]: int(info.size)
            for info in self._files.get_file_info(selector)
            if info.type == fs.FileType.File
        }

    def folders(self, folder: str) -> list[str]:
        """The names of the folders in a folder, sorted; none if it does not exist."""
        selector = fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True)
        found = self._files.get_file_info(selector)
        return sorted(info.base_name for info in found if info.type == fs.FileType.Directory)

    def has(self, name: str) -> bool:
        """Whether a file exists."""
        return bool(self._files.get_file_info(f"{self._root}/{name}").type == fs.FileType.File)

    def copy(self, name: str, target: Path, begin: int, end: int) -> None:
        """Copy bytes [begin, end) of a file to the same place in `target`, which is created if need be."""
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
        with self._open(name) as source, target.open("r+b") as copy:
            copy.seek(begin)
            for position in range(begin, end, WINDOW_BYTES):
                data = source.read_at(min(WINDOW_BYTES, end - position), position)
                copy.write(data)
                if not data:
                    break

    def copy_whole(self, name: str, folder: Path) -> Path:
        """Copy a file into a folder, under its relative path. `OptionError` if it does not exist."""
        size = self._files.get_file_info(f"{self._root}/{name}").size
        if size is None:
            raise OptionError(f"{self._option}: {self.url}/{name} does not exist")
        target = folder / name
        self.copy(name, target, 0, size)
        return target

    def copy_split(self, name: str, target: Path, begin: int, end: int, size: int, base: int) -> None:
        """Copy the bytes of a log file in which a split [begin, end) and the rest of its last record lie.

        The copy is as long as the original, `size`; `base` is the log position of its first byte.
        """
        self.copy(name, target, begin, end)
        with target.open("r+b") as copy:
            copy.truncate(size)
        reach = end
        window = min(WINDOW_BYTES, FIRST_WINDOW_BYTES)
        while reach < size:
            following = min(size, reach + window)
            self.copy(name, target, reach, following)
            reach, window = following, window * 2
            data = _part(target, end, reach)
            if find_record(memoryview(data), 0, len(data), base + end) < len(data):
                return  # a record begins after the split, so its last one is complete

    def _open(self, name: str) -> Any:
        return self._files.open_input_file(f"{self._root}/{name}")


def _part(path: Path, begin: int, end: int) -> bytes:
    with path.open("rb") as file:
        file.seek(begin)
        return file.read(end - begin)


@contextlib.contextmanager
def temporary_copies() -> Iterator[Path]:
    """A folder that is removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="pocketmq-copies-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def naming_originals(folder: Path, url: str) -> Iterator[None]:
    """Errors name the original and not its copy."""
    try:
        yield
    except CorruptStoreError as error:
        raise CorruptStoreError(str(error).replace(str(folder), url)) from error
    except PathError as error:
        raise PathError(error.reason.replace(str(folder), url), error.option) from error


def copy_plan(location: Location, folder: Path) -> None:
    """Copy what planning a scan needs: the sizes of the log's files, the consume queues, and the few bytes of the log
    that these do not cover."""
    for name, size in location.sizes("consumequeue").items():
        location.copy(name, folder / name, 0, size)
    for name, size in location.sizes("commitlog").items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as copy:
            copy.truncate(size)
    if not (folder / "commitlog").is_dir():
        return
    files = log_files(folder / "commitlog")
    queues = queue_splits(folder / "consumequeue", frozenset())
    known_end = known_log_end(queues)
    parts = uncovered_parts(files, queues, known_end) or []
    if sum(end - begin for _, begin, end in parts) <= UNCOVERED_BYTES:
        for file, begin, end in parts:
            location.copy(_name_in(folder, file), Path(file.path), begin, end)
    if files:
        _copy_tail(location, _name_in(folder, files[-1]), files[-1], max(known_end - files[-1].base, 0))


def _name_in(folder: Path, file: LogFile) -> str:
    return Path(file.path).relative_to(folder).as_posix()


def _copy_tail(location: Location, name: str, file: LogFile, begin: int) -> None:
    """Copy what the last file has behind the last record that a queue knows, up to a window of zeros: so planning finds
    the end of the log, as it does in a folder."""
    window = FIRST_WINDOW_BYTES
    while begin < file.size:
        end = min(begin + window, file.size)
        location.copy(name, Path(file.path), begin, end)
        if not any(_part(Path(file.path), begin, end)):
            return
        begin, window = end, min(2 * window, WINDOW_BYTES)


def with_urls(batch: Any, folder: str, url: str) -> Any:
    """The batch with the URLs of the originals in its column `file`."""
    if "file" not in batch.schema.names:
        return batch
    at = batch.schema.names.index("file")
    files = [text and text.replace(folder, url, 1) for text in batch.column(at).to_pylist()]
    return batch.set_column(at, batch.schema.field(at), pa.array(files, pa.string()))
