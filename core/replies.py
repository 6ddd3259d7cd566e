"""The replies of a pass: the form of a JSON frame, filled with the few values that differ between replies."""

import struct
from collections.abc import Callable
from typing import Final

from . import choice

Row = tuple[int | bytes, ...]
_PREFIX: Final = struct.Struct(">ii").pack


def reply_frames(form: bytes, rows: list[Row]) -> list[bytes]:
    """A frame for each row: its values in the places of `form`, which are %d, %b and %016X; %% is a percent sign."""
    return _fill_replies(form, rows) or fill_replies(form, rows)


def fill_replies(form: bytes, rows: list[Row]) -> list[bytes]:
    """`reply_frames` in Python. The one in C returns None if a frame would be longer than 2 KiB, or a row does not fit
    the form."""
    headers = [form % row for row in rows]
    return [_PREFIX(len(header) + 4, len(header)) + header for header in headers]


_fill_replies: Final[Callable[[bytes, list[Row]], list[bytes] | None]] = choice.chosen(fill_replies)
