"""Header blocks of one connection: HEADERS and its CONTINUATIONs become a list of (name, value).

The state of the decoder belongs to the connection: every block has to be decoded, also that of a refused call.
"""

from typing import Any, Final, NamedTuple

import hpack

from . import frames
from .frames import ConnectionFault, ErrorCode

HEADER_LIST_BYTES: Final = 8_192
"""As the official server: names, values and 32 bytes each."""
BLOCK_BYTES: Final = 2 * HEADER_LIST_BYTES
BLOCK_FRAMES: Final = 16
"""Frames of one block."""


class Block(NamedTuple):
    """A whole block."""

    stream_id: int
    is_end: bool
    """Whether the client sends nothing after it."""
    fields: list[Any]


class HeaderBlocks:
    """Collects and decodes. All methods raise `ConnectionFault`."""

    def __init__(self) -> None:
        self._decoder = hpack.Decoder()
        self._decoder.max_header_list_size = HEADER_LIST_BYTES
        self._flags = 0
        self._parts: list[bytes] = []
        self.stream_id = 0
        """That of a block that is not complete; 0 without one."""

    def begun(self, flags: int, stream_id: int, payload: bytes) -> Block | None:
        """HEADERS arrived; the block, if it is all of it."""
        payload = frames.unpadded(flags, payload, "HEADERS")
        if flags & frames.WITH_PRIORITY:
            if len(payload) < 5:
                raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "HEADERS too short for its priority")
            payload = payload[5:]
        if not stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "HEADERS on stream 0")
        if flags & frames.END_HEADERS:
            return self._decoded(stream_id, flags, payload)
        self.stream_id, self._flags, self._parts = stream_id, flags, [payload]
        return None

    def continued(self, flags: int, payload: bytes) -> Block | None:
        """CONTINUATION arrived; the block, if it is complete now."""
        if not self.stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "CONTINUATION without HEADERS")
        self._parts.append(payload)
        if len(self._parts) > BLOCK_FRAMES or sum(map(len, self._parts)) > BLOCK_BYTES:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "a header block is too long")
        if not flags & frames.END_HEADERS:
            return None
        stream_id, self.stream_id = self.stream_id, 0
        return self._decoded(stream_id, self._flags, b"".join(self._parts))

    def _decoded(self, stream_id: int, flags: int, block: bytes) -> Block:
        try:
            fields: list[Any] = list(self._decoder.decode(block, raw=True))
        except hpack.OversizedHeaderListError:
            reason = f"a header list of more than {HEADER_LIST_BYTES} bytes"
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, reason) from None
        except (hpack.HPACKError, IndexError, UnicodeError, ValueError) as error:
            reason = f"a header block cannot be decoded: {error}"
            raise ConnectionFault(ErrorCode.COMPRESSION_ERROR, reason) from None
        return Block(stream_id, bool(flags & frames.END_STREAM), fields)
