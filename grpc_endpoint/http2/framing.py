"""Messages inside the DATA of a call.

     0            1              5
    +------------+--------------+-----------...
    | compressed | length, 4    | message
    +------------+--------------+-----------...

Several may share a frame, and one may span many.
"""

import struct
import zlib
from typing import Final

PREFIX: Final = struct.Struct(">BL")
PREFIX_BYTES: Final = 5
assert PREFIX.size == PREFIX_BYTES

INFLATED_TIMES: Final = 8
INFLATED_MORE_BYTES: Final = 1_048_576
"""A gzip message may become so many times as long, and so many bytes more: it is inflated on the event loop."""

RESOURCE_EXHAUSTED: Final = 8
INTERNAL: Final = 13


class MessageRefused(Exception):
    """The call ends with this gRPC status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def is_single_message(data: bytes, most_bytes: int) -> bool:
    """Whether these bytes are one message, which is neither compressed nor too long."""
    size = len(data) - PREFIX_BYTES
    return 0 <= size <= most_bytes and data[0] == 0 and int.from_bytes(data[1:PREFIX_BYTES]) == size


class MessageDeframer:
    """Cuts the DATA of one call into messages."""

    __slots__ = ("_buffer", "_encoding", "_most")

    def __init__(self, encoding: str, most_bytes: int) -> None:
        self._encoding = encoding
        self._most = most_bytes
        self._buffer = bytearray()

    @property
    def unfinished_bytes(self) -> int:
        """What is kept of a message that is not complete."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are complete now. Raises `MessageRefused`."""
        buffer = self._buffer
        buffer += data
        found: list[bytes] = []
        at = 0
        while len(buffer) - at >= PREFIX_BYTES:
            compressed, size = PREFIX.unpack_from(buffer, at)
            if size > self._most:
                text = f"gRPC message exceeds maximum size {self._most}: {size}"
                raise MessageRefused(RESOURCE_EXHAUSTED, text)
            stop = at + PREFIX_BYTES + size
            if stop > len(buffer):
                break
            message = bytes(memoryview(buffer)[at + PREFIX_BYTES : stop])
            found.append(self._plain(compressed, message))
            at = stop
        if at:
            del buffer[:at]
        return found

    def _plain(self, compressed: int, message: bytes) -> bytes:
        if compressed == 0:
            return message
        if compressed != 1:
            raise MessageRefused(INTERNAL, "gRPC frame header malformed: reserved bits not zero")
        if self._encoding == "identity":
            raise MessageRefused(
                INTERNAL, "Can't decode compressed gRPC message as compression not configured"
            )
        inflater = zlib.decompressobj(wbits=31)
        most = min(self._most, INFLATED_TIMES * len(message) + INFLATED_MORE_BYTES)
        try:
            plain = inflater.decompress(message, most + 1)
        except zlib.error:
            raise MessageRefused(INTERNAL, "the compressed message is not gzip") from None
        if len(plain) > most:
            raise MessageRefused(RESOURCE_EXHAUSTED, f"Decompressed gRPC message exceeds maximum size {most}")
        if not inflater.eof:
            raise MessageRefused(INTERNAL, "the compressed message ends too early")
        return plain
