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
from .command import JSON, ROCKETMQ, Command
from .json_header import decode_json_header, encode_json_header

MAX_FRAME_BYTES: Final = 16 * 1024 * 1024
_PREFIX: Final = struct.Struct(">iI")
_LENGTH: Final = struct.Struct(">i")
assert _PREFIX.size == 8

HeaderDecoder = Callable[[memoryview, memoryview | None], Command | None]
"""Makes a command of a header and a body."""


class FrameCutter:
    """Cuts one direction of one connection into commands. Owned by the task that reads the connection.

    After a bad frame, `failure` says why and `feed` returns nothing more; the commands before it are good.
    Memory held between calls is at most one frame (`max_frame_bytes`) plus one chunk. `decode_json` reads headers in
    JSON; None from it means that it has dealt with the frame.
    """

    __slots__ = ("_decoders", "_max_frame_bytes", "_needed", "_pending", "failure")

    def __init__(
        self, max_frame_bytes: int = MAX_FRAME_BYTES, *, decode_json: HeaderDecoder = decode_json_header
    ) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._decoders: dict[int, HeaderDecoder] = {JSON: decode_json, ROCKETMQ: decode_binary_header}
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
        commands: list[Command] = []
        try:
            position = self._cut(data, commands)
        except FrameError as error:
            self.failure = error
            return commands
        if position < len(data):
            self._pending += memoryview(data)[position:]
        return commands

    @property
    def pending_bytes(self) -> int:
        """Bytes of an unfinished frame."""
        return len(self._pending)

    def _cut(self, data: bytes | bytearray, commands: list[Command]) -> int:
        size = len(data)
        view = memoryview(data)
        position = 0
        while size - position >= 4:
            (length,) = _LENGTH.unpack_from(data, position)
            if not 4 <= length <= self._max_frame_bytes - 4:
                raise FrameError(f"the frame length must be 4 to {self._max_frame_bytes - 4}, got {length}")
            end = position + 4 + length
            if end > size:
                self._needed = end - position
                return position
            word = _PREFIX.unpack_from(data, position)[1]
            body_start = position + 8 + (word & 0xFFFFFF)
            if body_start > end:
                raise FrameError(f"header of {word & 0xFFFFFF} bytes in a frame of {length} bytes")
            body = view[body_start:end] if body_start < end else None
            decode = self._decoders.get(word >> 24)
            if decode is None:
                raise FrameError(f"the serialize type must be 0 or 1, got {word >> 24}")
            command = decode(view[position + 8 : body_start], body)
            if command is not None:
                commands.append(command)
            position = end
        self._needed = 4
        return position


_ENCODERS: Final = {JSON: encode_json_header, ROCKETMQ: encode_binary_header}
"""By serialize type."""


def encode_prefix(command: Command, body_bytes: int) -> bytes:
    """Length, header word and header of a frame whose body of `body_bytes` follows separately."""
    header = _ENCODERS[command.header_type](command)
    length = 4 + len(header) + body_bytes
    return _PREFIX.pack(length, command.header_type << 24 | len(header)) + header


def encode_frame(command: Command) -> bytes:
    """The whole frame of a command, body included."""
    body = command.body
    if body is None:
        return encode_prefix(command, 0)
    return b"".join((encode_prefix(command, len(body)), body))
