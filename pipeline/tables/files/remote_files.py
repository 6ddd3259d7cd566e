"""Files behind a URL: in an object store, or on a network file system. No Spark.

A mapped file on NFS that its broker deletes kills the process that reads it, and an object store has nothing to map.
So what a task needs of a location given as a URL is read into memory, with plain reads.

    s3://bucket/store  gs://bucket/store  hdfs://host/store      through `pyarrow.fs`
    file:///mnt/nfs/store                                        a folder, with reads instead of mapping
"""

import functools
from typing import Any, Final

from ...errors import PATH, PathError
from .locations import shown_url

_SPARK_SCHEMES: Final = {"s3a": "s3", "s3n": "s3"}


def file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it. `PathError` if no file system knows the URL."""
    import pyarrow as pa
    from pyarrow import fs

    scheme, _, rest = url.partition("://")
    asked = f"{_SPARK_SCHEMES.get(scheme, scheme)}://{rest}"
    try:
        files, path = fs.FileSystem.from_uri(asked)
    except (pa.ArrowInvalid, OSError) as error:
        shown = shown_url(url)
        raise PathError(PATH, f"{shown} cannot be opened: {str(error).replace(asked, shown)}") from None
    return files, path


class Location:
    """A folder behind a URL. `PathError` if no file system knows the URL."""

    def __init__(self, url: str) -> None:
        self._files, self._root = file_system(url)
        self.url = shown_url(url)
        """The location without keys."""
        self._root = self._root.rstrip("/")

    def sizes(self, folder: str) -> dict[str, int]:
        """The files below a folder, as paths relative to the location, with their sizes; none if it does not exist."""
        found = self._listed(folder, recursive=True)
        return {str(info.path)[len(self._root) + 1 :]: int(info.size) for info in found if info.is_file}

    def folders(self, folder: str) -> list[str]:
        """The names of the folders in a folder, sorted; none if it does not exist."""
        found = self._listed(folder, recursive=False)
        return sorted(info.base_name for info in found if info.type.name == "Directory")

    def _listed(self, folder: str, *, recursive: bool) -> Any:
        from pyarrow import fs

        place = f"{self._root}/{folder}"
        return self._files.get_file_info(fs.FileSelector(place, allow_not_found=True, recursive=recursive))

    def read(self, name: str, begin: int = 0, end: int | None = None) -> bytes:
        """Bytes [begin, end) of a file, as far as it has them. `OSError` if it does not exist."""
        with self._files.open_input_file(f"{self._root}/{name}") as file:
            stop = file.size() if end is None else end
            return bytes(file.read_at(stop - begin, begin))


@functools.lru_cache(maxsize=16)
def location_of(url: str) -> Location:
    """One connection for all tasks of a process."""
    return Location(url)
