"""A file of 4096 bytes that begins with one fixed record of int64 fields: `checkpoint` and `timercheck`.

A shorter file counts as followed by zeros, as in the official broker. Fields that this program does not know keep
their bytes.
"""

import os
import struct
from pathlib import Path
from typing import Final

from ..errors import system_error
from . import disk

FIELDS_FILE_BYTES: Final = 4096


def decode_fields(data: bytes, fields: struct.Struct) -> tuple[int, ...]:
    """The fields at the head of some bytes; what is missing counts as zeros."""
    return fields.unpack(data[: fields.size].ljust(fields.size, b"\0"))


def read_fields(path: Path, fields: struct.Struct) -> tuple[int, ...] | None:
    """The fields of the file; None without a file. Raises StoreError."""
    try:
        return decode_fields(path.read_bytes(), fields)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise system_error("read", path, error) from error


def make_fields_file(path: Path) -> None:
    """Create the file if it is missing, and give it its length. Raises StoreError."""
    try:
        with disk.opened(path, os.O_RDWR | os.O_CREAT) as descriptor:
            _set_length(descriptor)
    except OSError as error:
        raise system_error("open", path, error) from error


def write_fields(path: Path, data: bytes) -> None:
    """Write the record and force it to disk; makes the file. Any thread, one call at a time.

    Raises OSError and DiskFailedError.
    """
    with disk.opened(path, os.O_RDWR | os.O_CREAT) as descriptor:
        disk.write_all(descriptor, data, 0)
        _set_length(descriptor)
        disk.force_file(descriptor, path)


def _set_length(descriptor: int) -> None:
    if os.fstat(descriptor).st_size != FIELDS_FILE_BYTES:
        os.ftruncate(descriptor, FIELDS_FILE_BYTES)
