"""Stores behind a URL (s3://, gs://, hdfs://, file://) as the tables of a folder.

The consume queues and the offsets, which planning needs, are copied once, when a table is first read. The tasks read
the log from the URL, each its part. The copies are those of one moment: later messages are not read.
"""

import contextlib
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from ..errors import CorruptStoreError, PathError
from ..files.log_files import log_files
from ..files.remote_files import location_of, shown_url

OFFSETS: Final = "config/consumerOffset.json"


class RemoteTable:
    """A table of tasks of a store behind a URL. `of_folder` makes it, with the folder of the copies."""

    def __init__(self, url: str, of_folder: Callable[[str], Any]) -> None:
        self._url = url
        self._of_folder = of_folder
        self._folder: Path | None = None
        self.schema = of_folder("").schema

    def check(self) -> None:
        """As the table of a folder, and `PathError` if there is no store behind the URL."""
        with self._table() as table:
            table.check()

    def tasks(self, condition: Any) -> list[Any]:
        with self._table() as table:
            tasks: list[Any] = table.tasks(condition)
        return tasks

    @contextlib.contextmanager
    def _table(self) -> Iterator[Any]:
        """The table over the copies. Errors name the originals."""
        folder, url = self._copies(), shown_url(self._url)
        try:
            yield self._of_folder(str(folder))
        except CorruptStoreError as error:
            raise CorruptStoreError(str(error).replace(str(folder), url)) from error
        except PathError as error:
            raise PathError(error.reason.replace(str(folder), url), error.option) from error

    def _copies(self) -> Path:
        """The folder, which is removed with this object."""
        if self._folder is None:
            location = location_of(self._url)
            folder = Path(tempfile.mkdtemp(prefix="pocketmq-plan-"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            try:
                log_files(self._url)  # is there a store?
                (folder / "commitlog").mkdir()
                for name in location.sizes("consumequeue"):
                    location.copy(name, folder)
                if OFFSETS in location.sizes("config"):
                    location.copy(OFFSETS, folder)
            except OSError as error:  # of the file system behind the URL
                raise PathError(f"{location.url} cannot be read: {error}") from error
            self._folder = folder
        return self._folder
