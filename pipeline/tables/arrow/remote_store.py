"""Stores behind a URL (s3://, gs://, hdfs://, file://) as the tables of a folder.

The consume queues and the offsets, which planning needs, are copied once, when a table is first read. The tasks read
the log from the URL, each its part. The copies are those of one moment: later messages are not read.
"""

import functools
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...errors import PATH, PathError
from ..files.consume_queues import OFFSETS
from ..files.log_files import log_files
from ..files.remote_files import location_of
from .tasks import Task, TaskTable


class RemoteStore:
    """A store behind a URL, of which a table is planned. `of_folder` makes the table, with the folder of the copies."""

    def __init__(self, url: str, of_folder: Callable[[str], TaskTable]) -> None:
        self._url = url
        self._of_folder = of_folder

    def tasks(self, condition: Any) -> Sequence[Task]:
        """Those of the table. `PathError` if there is no store behind the URL."""
        return self._of_folder(str(self._copies)).tasks(condition)

    @functools.cached_property
    def _copies(self) -> Path:
        """The folder, which is removed with this object."""
        location = location_of(self._url)
        folder = Path(tempfile.mkdtemp(prefix="pocketmq-plan-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        try:
            log_files(self._url)  # is there a store?
            (folder / "commitlog").mkdir()
            for name in {*location.sizes("consumequeue"), *location.sizes("config").keys() & {OFFSETS}}:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(location.read(name))
        except OSError as error:  # of the file system behind the URL
            raise PathError(PATH, f"{location.url} cannot be read: {error}") from error
        return folder
