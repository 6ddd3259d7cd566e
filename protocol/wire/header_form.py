"""JSON headers that differ in a few values, written from a form: the bytes between the values are made once.

    form    {"code":11,"extFields":{.. "queueOffset":"%d","maxMsgNums":"%d" ..} .. "opaque":%d ..}

A form is cut from the header of a sample, whose changing values are marks that nothing else in the header looks like.
Tests compare the frames of each form with those of the ordinary encoder.
"""

import struct
from collections.abc import Sequence
from typing import Any, Final

from .command import JSON, Command
from .json_header import encode_json_header

_PREFIX: Final = struct.Struct(">iI")


class HeaderForm:
    """Makes frames like the sample."""

    __slots__ = ("_header",)

    def __init__(self, header: bytes) -> None:
        self._header = header

    @classmethod
    def of(cls, sample: Command, places: Sequence[tuple[bytes, bytes]]) -> "HeaderForm | None":
        """`places` has, in the order of the header, each mark as the header spells it, and its conversion for `%`.

        None if a mark is not found just once, or in another order: the sample's other values look like one.
        """
        assert sample.header_type == JSON
        header = encode_json_header(sample).replace(b"%", b"%%")
        found = [header.find(mark) for mark, _ in places]
        if -1 in found or found != sorted(found) or any(header.count(mark) != 1 for mark, _ in places):
            return None
        for mark, conversion in places:
            header = header.replace(mark, conversion)
        return cls(header)

    def head(self, values: tuple[Any, ...], body_bytes: int) -> bytes:
        """Everything of the frame before its body. The values are in the order of the header."""
        header = self._header % values
        size = len(header)
        return _PREFIX.pack(4 + size + body_bytes, size) + header  # serialize type JSON is 0
