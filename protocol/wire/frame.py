"""Frames on a byte stream: cuts received bytes into commands, and writes a command as bytes. No I/O here.

    +--------------+--------------------------------------+-----------+----------+
    | length int32 | serialize type int8, header len int24 |  header  |   body   |
    +--------------+--------------------------------------+-----------+----------+
                    '------------------- length bytes ---------------------------'

All integers are big-endian. An empty body and no body are the same. A whole frame, its length field included, has at
most 16 MiB, as in `NettyDecoder`. After a bad frame the next one cannot be found, so the first failure ends the stream.
"""

import struct
from collections.abc import Callable
from typing import Final

from ..errors import FrameError
from .binary_header import decode_binary_header, encode_binary_header
from .command import JSON, RESPONSE_FLAG, ROCKETMQ, Command
from .json_header import decode_json_header, encode_json_header

MAX_FRAME_BYTES: Final = 16 * 1024 * 1024
MAX_FIELD_CHARACTERS: Final = 64 * 1024
"""Of one field of a request: handlers split, compare, keep and repeat such texts. The official limit is the frame's."""
_LONG_FIELDS: Final = frozenset(("properties", "i", "value"))
"""Fields whose handlers know their own limit: properties of a message, and the value of a key."""
PREFIX: Final = struct.Struct(">iI")
"""Frame length, and serialize type with header length."""
_READ_PREFIX: Final = PREFIX.unpack_from
_LENGTH: Final = struct.Struct(">i")
assert PREFIX.size == 8


class FrameCutter:
    """Cuts one direction of one connection into commands. Owned by the task that reads the connection.

    After a bad frame, `failure` says why and `feed` returns nothing more; the commands before it are good.
    Memory held between calls is at most one frame (`max_frame_bytes`) plus one chunk. `takes_header` gets each JSON
    header of a frame without body; a frame is not decoded if it returns True.
    """

    __slots__ = ("_max_frame_bytes", "_needed", "_pending", "_takes_header", "failure")

    def __init__(
        self, max_frame_bytes: int = MAX_FRAME_BYTES, *, takes_header: Callable[[bytes], bool] | None = None
    ) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._takes_header = takes_header
        self._pending = bytearray()
        self._needed = 0
        self.failure: FrameError | None = None

    def feed(self, chunk: bytes) -> list[Command]:
        """The commands completed by `chunk`; bodies are views into it (or into a joined copy)."""
        if self.failure is not None:
            return []
        data: bytes | bytearray = chunk
        if self._pending:
            self._pending += chunk
            if len(self._pending) < self._needed:
                return []
            data, self._pending = self._pending, bytearray()
        frames: list[Command] = []
        try:
            position = self._cut(data, frames)
        except FrameError as error:
            self.failure = error
            return frames
        if position < len(data):
            self._pending += memoryview(data)[position:]
        return frames

    @property
    def pending_bytes(self) -> int:
        """Bytes of an unfinished frame."""
        return len(self._pending)

    def _cut(self, data: bytes | bytearray, frames: list[Command]) -> int:
        size = len(data)
        view = memoryview(data)
        takes_header = self._takes_header
        position = 0
        while size - position >= 8:
            length, word = _READ_PREFIX(data, position)
            end = position + 4 + length
            if end > size or not 4 <= length <= self._max_frame_bytes - 4:
                break
            header_start = position + 8
            body_start = header_start + (word & 0xFFFFFF)
            if (
                takes_header is None
                or body_start != end
                or word >> 24 != JSON
                or not takes_header(bytes(data[header_start:end]))
            ):
                frames.append(self._decode(view, word, header_start, body_start, end))
            position = end
        return self._check_rest(data, position)

    def _check_rest(self, data: bytes | bytearray, position: int) -> int:
        """Note how many bytes the unfinished frame at `position` needs. Raises FrameError if it is a bad one."""
        self._needed = 4
        if len(data) - position >= 4:
            (length,) = _LENGTH.unpack_from(data, position)
            if not 4 <= length <= self._max_frame_bytes - 4:
                raise FrameError(f"the frame length must be 4 to {self._max_frame_bytes - 4}, got {length}")
            self._needed = 4 + length
        return position

    def _decode(self, view: memoryview, word: int, header_start: int, body_start: int, end: int) -> Command:
        if body_start > end:
            raise FrameError(
                f"header of {word & 0xFFFFFF} bytes in a frame of {end - header_start + 4} bytes"
            )
        header = view[header_start:body_start]
        command = decode_header(word >> 24, header, view[body_start:end] if body_start < end else None)
        if len(header) > MAX_FIELD_CHARACTERS and not command.flag & RESPONSE_FLAG:
            _check_fields(command)
        return command


def _check_fields(command: Command) -> None:
    for name, value in (command.fields or {}).items():
        if len(value) > MAX_FIELD_CHARACTERS and name not in _LONG_FIELDS:
            raise FrameError(f"request {command.code}: the field {name[:40]} has {len(value)} characters")


_DECODERS: Final = {JSON: decode_json_header, ROCKETMQ: decode_binary_header}
_ENCODERS: Final = {JSON: encode_json_header, ROCKETMQ: encode_binary_header}
"""By serialize type."""


def decode_header(serialize_type: int, header: memoryview, body: memoryview | None = None) -> Command:
    """The command of a header. Raises FrameError."""
    decode = _DECODERS.get(serialize_type)
    if decode is None:
        raise FrameError(f"the serialize type must be 0 or 1, got {serialize_type}")
    return decode(header, body)


def encode_prefix(command: Command, body_bytes: int) -> bytes:
    """Length, header word and header of a frame whose body of `body_bytes` follows separately. Raises FrameError for a
    frame that a peer would not read."""
    header = _ENCODERS[command.header_type](command)
    length = 4 + len(header) + body_bytes
    if length > MAX_FRAME_BYTES - 4:
        raise FrameError(f"a frame of {length + 4} bytes; peers read {MAX_FRAME_BYTES} at most")
    return PREFIX.pack(length, command.header_type << 24 | len(header)) + header


def encode_frame(command: Command) -> bytes:
    """The whole frame of a command, body included."""
    body = command.body
    if body is None:
        return encode_prefix(command, 0)
    return b"".join((encode_prefix(command, len(body)), body))
