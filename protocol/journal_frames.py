"""The journal: what a broker was asked and what it answered, as bytes in a file.

    +--------------+------------------------------+
    | "PMQJRNL" 7  | version 1 byte               |      8 bytes at the start of each file
    +--------------+------------------------------+
    +-----------+----------+----------------------+
    | length 4  | CRC-32 4 | payload, length bytes|      frames, one behind the other, big-endian
    +-----------+----------+----------------------+

The payload is MessagePack: the first frame of a file holds a map about the broker (`about`), every other one an array
of entries, each an array that begins with its kind. Fields of `Exchange` in their order are the elements of kind 0,
those of `Connected`, `Closed`, `Pushed` and `Dropped` of the others. Times are nanoseconds since 1970 by the broker's
clock. A file that ends in the middle of a frame (a kill) is good up to that frame. Unknown kinds and more elements
than known are left out by readers, so new ones need no new version. Not here: writing files
(`pocketmq.broker.network.journal`).
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from .errors import BodyError

MAGIC: Final = b"PMQJRNL"
VERSION: Final = 1
HEAD: Final = MAGIC + bytes((VERSION,))
SUFFIX: Final = ".journal"
MAX_FRAME_BYTES: Final = 256 * 1024 * 1024

_FRAME: Final = struct.Struct(">II")
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder().decode
_ARRAY: Final = struct.Struct(">BI")
_ARRAY_32: Final = 0xDD
"""MessagePack's array with a length of four bytes follows."""

pack_entry: Final = msgspec.msgpack.Encoder().encode_into
"""`pack_entry(entry, frame, -1)`: an entry behind the others of a frame of `new_frame`."""

EXCHANGE, CONNECTED, CLOSED, PUSHED, DROPPED = range(5)


class JournalFormatError(BodyError):
    """No journal file, or one of a newer form."""


class Exchange(msgspec.Struct, frozen=True, array_like=True, tag=EXCHANGE):
    """One request and its answer. Without an answer (one-way, or the connection ended) `answered_ns` is 0 and
    `reply_code` None. A CRC is of the whole body; `detail` is the body itself where it says who the client is."""

    received_ns: int
    answered_ns: int
    connection: int
    client_id: str | None
    code: int
    opaque: int
    version: int
    language: str
    is_oneway: bool
    fields: dict[str, str] | None
    body_bytes: int
    body_crc: int
    reply_code: int | None = None
    reply_remark: str | None = None
    reply_fields: dict[str, str] | None = None
    reply_bytes: int = 0
    reply_crc: int = 0
    detail: str | None = None


class Connected(msgspec.Struct, frozen=True, array_like=True, tag=CONNECTED):
    """A connection was made; `server` is `broker` or `name server`."""

    at_ns: int
    connection: int
    server: str
    peer: str


class Closed(msgspec.Struct, frozen=True, array_like=True, tag=CLOSED):
    """A connection ended."""

    at_ns: int
    connection: int


class Pushed(msgspec.Struct, frozen=True, array_like=True, tag=PUSHED):
    """The broker asked a client something, or told it."""

    at_ns: int
    connection: int
    client_id: str | None
    code: int
    fields: dict[str, str] | None
    body_bytes: int


class Dropped(msgspec.Struct, frozen=True, array_like=True, tag=DROPPED):
    """So many entries were not written since the last frame, because the writer could not follow."""

    at_ns: int
    count: int


Entry = Exchange | Connected | Closed | Pushed | Dropped


def encode_frame(payload: Any) -> bytes:
    """A frame around anything MessagePack can hold."""
    frame = bytearray(_FRAME.size)
    frame += _encode(payload)
    return bytes(_with_head(frame))


def new_frame() -> bytearray:
    """A frame to be filled: room for its head, and for that of the array of entries."""
    return bytearray(_FRAME.size + _ARRAY.size)


def finish_frame(frame: bytearray, count: int) -> bytearray:
    """The frame with its heads, once `count` entries are packed into it."""
    _ARRAY.pack_into(frame, _FRAME.size, _ARRAY_32, count)
    return _with_head(frame)


def _with_head(frame: bytearray) -> bytearray:
    """Length and CRC-32 of what stands behind the room for them."""
    with memoryview(frame) as view:
        crc = zlib.crc32(view[_FRAME.size :])
    _FRAME.pack_into(frame, 0, len(frame) - _FRAME.size, crc)
    return frame


def encode_head(about: dict[str, Any]) -> bytes:
    """The beginning of a file, with what is to be known about the broker."""
    return HEAD + encode_frame(about)


def check_head(data: bytes | memoryview) -> None:
    """`JournalFormatError` unless a file begins so."""
    head = bytes(data[: len(HEAD)])
    if head[: len(MAGIC)] != MAGIC:
        raise JournalFormatError(f"no journal: it begins with {head!r}")
    if head[len(MAGIC)] > VERSION:
        raise JournalFormatError(
            f"a journal of version {head[len(MAGIC)]}; versions up to {VERSION} are read here"
        )


class FrameReader:
    """Iterates over the payloads of one file, the first of which is `about`; `torn_at` says afterwards where a cut or
    damaged frame begins, None where the file ends in order."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)
        self.torn_at: int | None = None
        # A broker that is killed between making a file and writing to it leaves an empty one.
        self._is_begun = len(data) >= len(HEAD) or not HEAD.startswith(bytes(data[: len(HEAD)]))
        if self._is_begun:
            check_head(self._data)

    def __iter__(self) -> Iterator[memoryview]:
        data, position, end = self._data, len(HEAD), len(self._data)
        if not self._is_begun:
            self.torn_at = 0
            return
        while position < end:
            if position + _FRAME.size > end:
                break
            length, crc = _FRAME.unpack_from(data, position)
            first = position + _FRAME.size
            if length > MAX_FRAME_BYTES or first + length > end:
                break
            payload = data[first : first + length]
            if zlib.crc32(payload) != crc:
                break
            yield payload
            position = first + length
        self.torn_at = None if position == end else position


def decode_about(payload: memoryview) -> dict[str, Any]:
    """The map of a file's first frame. Raises JournalFormatError."""
    try:
        about = _decode(payload)
    except msgspec.DecodeError as error:
        raise JournalFormatError(f"the first frame is not readable: {error}") from error
    if not isinstance(about, dict):
        raise JournalFormatError("the first frame is no map")
    return about


def decode_entries(payload: memoryview) -> list[Entry]:
    """The entries of a frame; those of a kind not known here are left out. Raises JournalFormatError."""
    try:
        raw: Sequence[Any] = _decode(payload)
        return [
            msgspec.convert(one, Entry)
            for one in raw
            if isinstance(one, list) and one and one[0] in range(DROPPED + 1)
        ]
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise JournalFormatError(f"a frame that passes its CRC is not readable: {error}") from error
