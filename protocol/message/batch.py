"""The body of a batch send (code 320): several messages of one topic, back to back.

    +--------------+-----------+---------------+---------+----------------------+----------------------------+
    | totalSize 4  | magic 4=0 | bodyCRC  4 =0 | flag  4 | bodyLength 4, body n | propertiesLength 2, text n |
    +--------------+-----------+---------------+---------+----------------------+----------------------------+

The body of a 5.x "inner batch" record has the same layout. Magic and CRC are written as 0 and ignored on read.
totalSize is ignored, too: official readers use only the inner lengths. Official class: MessageDecoder (encodeMessage,
decodeMessage).
"""

import functools
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from ..errors import BodyError
from .properties import UNIQ_KEY
from .record import MAX_PROPERTIES_BYTES

_HEAD = struct.Struct(">iiiii")
_FLAG_AND_LENGTH = struct.Struct(">12xii")
_BODY_LENGTH = struct.Struct(">16xi")
_SHORT = struct.Struct(">h")
assert _HEAD.size == _FLAG_AND_LENGTH.size == 20
UNIQUE_ID_BYTES = 32
SMALLEST_ELEMENT = 22
MAX_ELEMENTS = 16_384
MAX_KEYS = 16_384
"""Messages of a batch that a broker stores, and blanks in their properties, which part the keys to index. The official
limit is the size of the body, which may hold 190,000 messages, or two million keys."""
_UNIQUE_ID_NAME = f"{UNIQ_KEY}\x01".encode()


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


class AlikeElements(msgspec.Struct, gc=False):
    """Messages of a batch that differ in body and unique id only."""

    flag: int
    before_id: bytes
    """The property text up to the unique id."""
    behind_id: bytes
    bodies: Sequence[bytes]
    unique_ids: Sequence[bytes]
    """32 ASCII letters and digits each."""


def alike_elements(data: bytes) -> AlikeElements | None:
    """The elements of a batch body if they differ in body and unique id only; None if they differ in anything else, or
    if the batch cannot be read."""
    if len(data) < _HEAD.size:
        return None
    flag, body_length = _FLAG_AND_LENGTH.unpack_from(data, 0)
    text_at = _HEAD.size + body_length
    id_at = data.find(_UNIQUE_ID_NAME, max(text_at, 0)) + len(_UNIQUE_ID_NAME)
    properties_length = int.from_bytes(data[text_at : text_at + 2], "big")
    behind_at, end = id_at + UNIQUE_ID_BYTES, text_at + 2 + properties_length
    if body_length < 0 or id_at <= text_at or behind_at > end or end > len(data):
        return None
    behind_id = data[behind_at:end]
    bodies: Sequence[bytes] = ()
    unique_ids: Sequence[bytes] = ()
    if len(data) % end == 0:
        bodies, unique_ids = zip(*_shape(body_length, id_at - text_at, end - behind_at)(data), strict=True)
        pieces = [data[: _HEAD.size], b"", data[text_at:id_at], b"", behind_id] * len(bodies)
        pieces[1::5], pieces[3::5] = bodies, unique_ids
    if not bodies or b"".join(pieces) != data:
        bodies, unique_ids = [], []
        if not _walk_alike(data, data[12:16], data[text_at:id_at], behind_id, bodies, unique_ids):
            return None
    # A separator inside would end the id, or begin another property.
    if not b"".join(unique_ids).isalnum():
        return None
    return AlikeElements(flag, data[text_at + 2 : id_at], behind_id, bodies, unique_ids)


@functools.lru_cache(1024)
def _shape(
    body_bytes: int, before_bytes: int, behind_bytes: int
) -> Callable[[bytes], Iterator[tuple[bytes, ...]]]:
    """A function that reads body and id of each element of one shape."""
    return struct.Struct(
        f">{_HEAD.size}x{body_bytes}s{before_bytes}x{UNIQUE_ID_BYTES}s{behind_bytes}x"
    ).iter_unpack


def _walk_alike(
    data: bytes,
    flag: bytes,
    before_id: bytes,
    behind_id: bytes,
    bodies: list[bytes],
    unique_ids: list[bytes],
) -> bool:
    """Add each element's body and id; False if one is not of this form. `before_id` begins with the length of the
    properties."""
    at, end = 0, len(data)
    while at < end:
        body_at = at + _HEAD.size
        text_at = body_at + int.from_bytes(data[body_at - 4 : body_at], "big", signed=True)
        id_at = text_at + len(before_id)
        behind_at = id_at + UNIQUE_ID_BYTES
        next_at = behind_at + len(behind_id)
        if (
            text_at < body_at
            or next_at > end
            or data[at + 12 : at + 16] != flag
            or data[text_at:id_at] != before_id
            or data[behind_at:next_at] != behind_id
        ):
            return False
        bodies.append(data[body_at:text_at])
        unique_ids.append(data[id_at:behind_at])
        at = next_at
    return True


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
