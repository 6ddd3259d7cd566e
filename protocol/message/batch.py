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
_BODY_LENGTH = struct.Struct(">16xi")
_SHORT = struct.Struct(">h")
assert _HEAD.size == _FLAG_AND_LENGTH.size == 20
SMALLEST_ELEMENT = 22
MAX_ELEMENTS = 16_384
MAX_KEYS = 16_384
"""Messages of a batch that a broker stores, and blanks in their properties, which part the keys to index. The official
limit is the size of the body, which may hold 190,000 messages, or two million keys."""


class BatchElement(msgspec.Struct, frozen=True):
    """One message of a batch. After decoding, `body` and `properties` are views of the batch body."""

    flag: int
    body: bytes | memoryview
    properties: bytes | memoryview


def is_storable(data: bytes | memoryview) -> bool:
    """Whether a batch body has no more messages and keys than a broker stores in one turn. True, too, for a body that
    cannot be read."""
    data = bytes(data)
    if len(data) <= SMALLEST_ELEMENT * MAX_ELEMENTS and data.count(b" ") <= MAX_KEYS:
        return True
    end, position, count, keys = len(data), 0, 0, 0
    while 0 <= position <= end - SMALLEST_ELEMENT:
        body_end = position + 20 + _BODY_LENGTH.unpack_from(data, position)[0]
        if not position + 20 <= body_end <= end - 2:
            break
        position = body_end + 2 + _SHORT.unpack_from(data, body_end)[0]
        keys += data.count(b" ", body_end + 2, position)
        count += 1
        if count > MAX_ELEMENTS or keys > MAX_KEYS:
            return False
    return True


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
