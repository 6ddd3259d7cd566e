"""A file mapped into memory, and where its written bytes end. No Spark."""

import errno
import mmap
import os
import re
from typing import Final

FILE_NAME: Final = re.compile(r"\d{20}")
"""Files of a log or a queue are named by the position of their first byte."""


def map_file(path: str) -> memoryview:
    """The bytes of a file, read-only. Pages are read from the disk when they are touched."""
    with open(path, "rb") as file:
        try:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except ValueError:  # an empty file cannot be mapped
            return memoryview(b"")


def data_end(path: str, begin: int = 0) -> int:
    """Where the last byte ends that the file system stores, at or after `begin`: after it are only zeros.

    The file's size if the file system does not report holes.
    """
    with open(path, "rb") as file:
        end = begin
        try:
            while True:
                end = os.lseek(file.fileno(), os.lseek(file.fileno(), end, os.SEEK_DATA), os.SEEK_HOLE)
        except OSError as error:
            return end if error.errno == errno.ENXIO else os.fstat(file.fileno()).st_size
