"""The body of a batch send (code 320): several messages of one topic, back to back.

    +--------------+-----------+---------------+---------+----------------------+----------------------------+
    | totalSize 4  | magic 4=0 | bodyCRC  4 =0 | flag  4 | bodyLength 4, body n | propertiesLength 2, text n |
    +--------------+-----------+---------------+---------+----------------------+----------------------------+

The body of a 5.x "inner batch" record has the same layout. Magic and CRC are written as 0 and ignored on read.
totalSize is ignored, too: official readers use only the inner lengths. Official class: MessageDecoder (encodeMessage,
decodeMessage).
"""

import struct
from collections.abc import Iterable

import msgspec

from ..errors import BodyError
from .record import MAX_PROPERTIES_BYTES

_HEAD = struct.Struct(">iiiii")
_FLAG_AND_LENGTH = struct.Struct(">12xii")
_SHORT = struct.Struct(">h")
assert _HEAD.size == _FLAG_AND_LENGTH.size == 20


class BatchElement(msgspec.Struct, frozen=True):
    """One message of a batch. After decoding, `body` and `properties` are views of the batch body."""

    flag: int
    body: bytes | memoryview
    properties: bytes | memoryview


def decode_batch(data: bytes | memoryview) -> list[BatchElement]:
    """The elements of a batch body, without copying them. Raises BodyError if a length leads beyond the end."""
    view = memoryview(data)
    end = len(view)
    elements: list[BatchElement] = []
    position = 0
    while position < end:
        if position + 20 > end:
            raise BodyError(f"batch element {len(elements)} at byte {position} is cut off")
        flag, body_length = _FLAG_AND_LENGTH.unpack_from(view, position)
        body_start = position + 20
        properties_start = body_start + body_length + 2
        if body_length < 0 or properties_start > end:
            raise BodyError(f"batch element {len(elements)} has a body of {body_length} bytes beyond the end")
        (properties_length,) = _SHORT.unpack_from(view, properties_start - 2)
        position = properties_start + properties_length
        if properties_length < 0 or position > end:
            raise BodyError(
                f"batch element {len(elements)} has properties of {properties_length} bytes beyond the end"
            )
        elements.append(
            BatchElement(flag, view[body_start : properties_start - 2], view[properties_start:position])
        )
    return elements


def encode_batch(elements: Iterable[BatchElement]) -> bytes:
    """A batch body. Raises BodyError if the properties of an element exceed 32767 bytes."""
    pieces: list[bytes | memoryview] = []
    for element in elements:
        body, properties = element.body, element.properties
        if len(properties) > MAX_PROPERTIES_BYTES:
            raise BodyError(
                f"properties of {len(properties)} bytes; at most {MAX_PROPERTIES_BYTES} fit a record"
            )
        total = 22 + len(body) + len(properties)
        pieces += (
            _HEAD.pack(total, 0, 0, element.flag, len(body)),
            body,
            _SHORT.pack(len(properties)),
            properties,
        )
    return b"".join(pieces)
