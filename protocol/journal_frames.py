"""The journal: requests and replies of a broker, recorded in a file. A form of our own, not of RocketMQ.

    +--------------+------------------------------+
    | "PMQJRNL" 7  | version 1 byte               |      8 bytes at the start of each file
    +--------------+------------------------------+
    +-----------+----------+----------------------+
    | length 4  | CRC-32 4 | payload, length bytes|      frames, one behind the other, big-endian
    +-----------+----------+----------------------+

The payload is MessagePack. The first frame of a file holds a map about the broker (`about`). Every other one holds an
array of entries; each entry is an array that begins with its kind. The elements of kind 0 are the fields of `Exchange`
in their order; the other kinds are `Connected`, `Closed`, `Pushed`, `Dropped` and `Sends`, which is read as one
`Exchange` for each send. Times are nanoseconds since 1970 by
the broker's clock. A file that ends in the middle of a frame (after a kill) is good up to that frame. Readers ignore
unknown kinds and additional elements, so new ones need no new version. `pocketmq.broker.network.journal` writes the
files.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgpack
import msgspec

from .errors import BodyError, FrameError
from .wire.command import Command
from .wire.frame import PREFIX, FrameCutter, decode_header

MAGIC: Final = b"PMQJRNL"
VERSION: Final = 1
HEAD: Final = MAGIC + bytes((VERSION,))
SUFFIX: Final = ".journal"
MAX_FRAME_BYTES: Final = 256 * 1024 * 1024

_FRAME: Final = struct.Struct(">II")
_UNREADABLE: Final = (ValueError, msgpack.UnpackException)
_ARRAY: Final = struct.Struct(">BI")
_ARRAY_32: Final = 0xDD
"""MessagePack: an array whose length has four bytes."""

pack_entry: Final = msgpack.Packer().pack
"""The bytes of an entry, to be appended to a frame of `new_frame`. UnicodeEncodeError for half a surrogate pair."""

EXCHANGE, CONNECTED, CLOSED, PUSHED, DROPPED, SENDS = range(6)


class JournalFormatError(BodyError):
    """The file is not a journal, or has a newer version."""


class Exchange(msgspec.Struct, frozen=True, array_like=True, tag=EXCHANGE):
    """One request and its reply. Without a reply (one-way, or the connection ended) `answered_ns` is 0 and
    `reply_code` None. A CRC covers the whole body; `detail` is the body itself if it names the client.

    The code of a gRPC call is its number in `rpc_numbers.py`, its reply code 0 for OK or the number of the `Code`;
    `detail` has settings and heartbeats in the form of a remoting heartbeat."""

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
    """A connection was opened; `server` is `broker`, `name server` or `gRPC`. There each client is a connection."""

    at_ns: int
    connection: int
    server: str
    peer: str


class Closed(msgspec.Struct, frozen=True, array_like=True, tag=CLOSED):
    """A connection ended."""

    at_ns: int
    connection: int


class Pushed(msgspec.Struct, frozen=True, array_like=True, tag=PUSHED):
    """The broker sent a request to a client."""

    at_ns: int
    connection: int
    client_id: str | None
    code: int
    fields: dict[str, str] | None
    body_bytes: int


class Dropped(msgspec.Struct, frozen=True, array_like=True, tag=DROPPED):
    """Entries that were lost since the last frame, because the writer was too slow."""

    at_ns: int
    count: int


class Sends(msgspec.Struct, frozen=True, array_like=True, tag=SENDS):
    """Sends whose headers repeat, answered together and recorded without decoding them.

    `requests` has their frames without the bodies, one behind the other; the length in a frame's prefix still counts
    its body. `replies` has the whole frames of the replies. Of each body its CRC-32.
    """

    at_ns: int
    connection: int
    client_id: str | None
    requests: bytes
    body_crcs: list[int]
    replies: bytes


Entry = Exchange | Connected | Closed | Pushed | Dropped


def encode_frame(payload: Any) -> bytes:
    """A frame with any MessagePack value."""
    frame = bytearray(_FRAME.size)
    frame += msgpack.packb(payload)
    return bytes(_with_head(frame))


def new_frame() -> bytearray:
    """An empty frame: room for its head and the head of the array of entries."""
    return bytearray(_FRAME.size + _ARRAY.size)


def finish_frame(frame: bytearray, count: int) -> bytearray:
    """The frame with its heads, once `count` entries are packed into it."""
    _ARRAY.pack_into(frame, _FRAME.size, _ARRAY_32, count)
    return _with_head(frame)


def _with_head(frame: bytearray) -> bytearray:
    """Fills in the length and CRC-32 of the payload."""
    with memoryview(frame) as view:
        crc = zlib.crc32(view[_FRAME.size :])
    _FRAME.pack_into(frame, 0, len(frame) - _FRAME.size, crc)
    return frame


def encode_head(about: dict[str, Any]) -> bytes:
    """The beginning of a file, with the map about the broker."""
    return HEAD + encode_frame(about)


def check_head(data: bytes | memoryview) -> None:
    """Raises JournalFormatError if `data` is not the beginning of a journal."""
    head = bytes(data[: len(HEAD)])
    if head[: len(MAGIC)] != MAGIC:
        raise JournalFormatError(f"not a journal: it begins with {head!r}")
    if head[len(MAGIC)] > VERSION:
        raise JournalFormatError(
            f"a journal of version {head[len(MAGIC)]}; versions up to {VERSION} are read here"
        )


class FrameReader:
    """Iterates over the payloads of one file; the first is `about`. Afterwards `torn_at` is where a cut or damaged
    frame begins, or None if the file ends with a whole frame."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)
        self.torn_at: int | None = None
        # A broker that is killed between creating a file and writing to it leaves an empty one.
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
        about = msgpack.unpackb(payload)
    except _UNREADABLE as error:
        raise JournalFormatError(f"the first frame is not readable: {error}") from error
    if not isinstance(about, dict):
        raise JournalFormatError("the first frame must be a map")
    return about


def decode_entries(payload: memoryview) -> list[Entry]:
    """The entries of a frame, without those of an unknown kind. Raises JournalFormatError."""
    found: list[Entry] = []
    try:
        raw: Sequence[Any] = msgpack.unpackb(payload, strict_map_key=False)
        for entry in raw:
            if not (isinstance(entry, list) and entry and entry[0] in range(SENDS + 1)):
                continue
            if entry[0] == SENDS:
                found += _exchanges(msgspec.convert(entry, Sends))
            else:
                found.append(msgspec.convert(entry, Entry))
    except (*_UNREADABLE, msgspec.ValidationError, FrameError, struct.error, TypeError) as error:
        raise JournalFormatError(f"a frame that passes its CRC is not readable: {error}") from error
    return found


def _exchanges(sends: Sends) -> Iterator[Exchange]:
    """One exchange for each of these sends. They were handled at once, so one time is both of theirs."""
    position, requests = 0, memoryview(sends.requests)
    for crc, reply in zip(sends.body_crcs, FrameCutter().feed(sends.replies), strict=True):
        length, word = PREFIX.unpack_from(requests, position)
        end = position + PREFIX.size + (word & 0xFFFFFF)
        command = decode_header(word >> 24, requests[position + PREFIX.size : end])
        body_bytes = length + 4 - (end - position)
        position = end
        yield _exchange(sends, command, body_bytes, crc, reply)


def _exchange(sends: Sends, command: Command, body_bytes: int, body_crc: int, reply: Command) -> Exchange:
    return Exchange(
        sends.at_ns, sends.at_ns, sends.connection, sends.client_id, command.code, command.opaque, command.version,
        command.language, False, command.fields, body_bytes, body_crc,
        reply.code, reply.remark, reply.fields,
    )  # fmt: skip
