"""Folders of Parquet files that a job writes, and may write anew: only what a job has written is ever replaced.

A finished folder has an empty file `_pocketmq`, which readers of Parquet pass over, as they do `_SUCCESS`. A folder
without it must be new or empty. Where only Spark can look, Spark refuses a folder that exists.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ...errors import OptionError
from ...tables.files.locations import is_url
from ...tables.files.remote_files import file_system

MARKER: Final = "_pocketmq"
LOOKS: Final = frozenset(("file", "gs", "hdfs", "s3", "s3a", "s3n"))
"""Where Arrow looks. Other file systems it finds by the keys of Spark alone, or not at all, and tries for minutes."""
OVERWRITE, ERROR_IF_EXISTS = "overwrite", "errorifexists"
"""Spark's names of what a write does with files that are there."""


def write_mode(option: str, folder: str) -> str:
    """How the folder may be written. `OptionError` if it holds anything that no job has written."""
    if not is_url(folder) and Path(folder).exists() and not Path(folder).is_dir():
        raise OptionError(option, f": {folder} is a file")
    names = names_in_folder(folder)
    if names is None:
        return ERROR_IF_EXISTS
    if names and MARKER not in names:
        raise OptionError(
            option,
            f": {folder} holds {min(names)}, and no job has written it: it must be new, empty or an earlier "
            "result; delete it, or name another folder",
        )
    return OVERWRITE


def names_in_folder(folder: str) -> list[str] | None:
    """The names in a folder, none if it does not exist; None if only Spark can look there."""
    if not is_url(folder):
        return [path.name for path in Path(folder).iterdir()] if Path(folder).is_dir() else []
    if folder.partition("://")[0] not in LOOKS:
        return None
    from pyarrow import fs

    try:
        files, path = file_system(folder)
        found = files.get_file_info(fs.FileSelector(path.rstrip("/"), allow_not_found=True))
    except (OptionError, OSError, NotImplementedError):
        return None
    return [info.base_name for info in found]


@contextmanager
def replaced(option: str, folder: str) -> Iterator[str]:
    """Around a write of the folder: gives the mode, and marks the folder, also one that is written in part only."""
    mode = write_mode(option, folder)
    try:
        yield mode
    finally:
        if mode == OVERWRITE:
            _mark(folder)


def _mark(folder: str) -> None:
    if not is_url(folder):
        if Path(folder).is_dir():
            (Path(folder) / MARKER).touch()
        return
    files, path = file_system(folder)
    files.open_output_stream(f"{path.rstrip('/')}/{MARKER}").close()
