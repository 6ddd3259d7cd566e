"""Header blocks of one connection: HEADERS and its CONTINUATIONs become a list of headers.

The state of the decoder belongs to the connection: every block has to be decoded, also that of a refused call.
"""

from typing import Final

from ..hpack.decoding import Decoder, Field, HeaderListTooLong
from ..hpack.huffman import MalformedBlock
from . import frames
from .frames import ConnectionFault, ErrorCode

HEADER_LIST_BYTES: Final = 8_192
"""As the official server: names, values and 32 bytes each."""
BLOCK_BYTES: Final = 2 * HEADER_LIST_BYTES
BLOCK_FRAMES: Final = 16
"""Frames of one block."""


Block = tuple[list[Field], bool]
"""A whole block, and whether the client sends nothing after it."""


class HeaderBlocks:
    """Collects and decodes. All methods raise `ConnectionFault`."""

    def __init__(self) -> None:
        self._decoder = Decoder(HEADER_LIST_BYTES)
        self._is_end = False
        self._parts: list[bytes] = []
        self.stream_id = 0
        """That of a block that is not complete; 0 without one."""

    def on_headers(self, flags: int, stream_id: int, payload: bytes) -> Block | None:
        """HEADERS arrived; the block, if it is whole."""
        if flags & frames.PADDED:
            payload = frames.unpadded(payload, "HEADERS")
        if flags & frames.WITH_PRIORITY:
            if len(payload) < 5:
                raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "HEADERS too short for its priority")
            payload = payload[5:]
        if not stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "HEADERS on stream 0")
        if flags & frames.END_HEADERS:
            return self._decoded(payload), bool(flags & frames.END_STREAM)
        self.stream_id, self._parts = stream_id, [payload]
        self._is_end = bool(flags & frames.END_STREAM)
        return None

    def on_continuation(self, flags: int, payload: bytes) -> Block | None:
        """CONTINUATION arrived; the block, if it is complete now."""
        if not self.stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "CONTINUATION without HEADERS")
        self._parts.append(payload)
        if len(self._parts) > BLOCK_FRAMES or sum(map(len, self._parts)) > BLOCK_BYTES:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "a header block is too long")
        if not flags & frames.END_HEADERS:
            return None
        self.stream_id, block, self._parts = 0, b"".join(self._parts), []
        return self._decoded(block), self._is_end

    def _decoded(self, block: bytes) -> list[Field]:
        try:
            return self._decoder.decode(block)
        except HeaderListTooLong as error:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, str(error)) from None
        except MalformedBlock as error:
            reason = f"a header block cannot be decoded: {error}"
            raise ConnectionFault(ErrorCode.COMPRESSION_ERROR, reason) from None
