"""A file mapped into memory, and where its written bytes end. No Spark."""

import errno
import mmap
import os
import re
from typing import Final

FILE_NAME: Final = re.compile(r"\d{20}")
"""Files of a log or queue carry the position of their first byte."""


def data_end(path: str, begin: int = 0) -> int:
    """Where the last byte ends, at or behind `begin`, that the file system keeps: behind it there are but zeros,
    which nobody needs to look at. The file's size where a file system does not tell."""
    with open(path, "rb") as file:
        end = begin
        try:
            while True:
                end = os.lseek(file.fileno(), os.lseek(file.fileno(), end, os.SEEK_DATA), os.SEEK_HOLE)
        except OSError as error:
            return end if error.errno == errno.ENXIO else os.fstat(file.fileno()).st_size


def map_file(path: str) -> memoryview:
    """A file in memory, to be read. Pages come from the disk as they are touched."""
    with open(path, "rb") as file:
        try:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except ValueError:  # an empty file cannot be mapped
            return memoryview(b"")
