"""Compressed message bodies: zlib, LZ4 frame or zstd, by bits of the message's sysFlag.

Brokers store and deliver a body as it came. Producers compress (official ones from 4096 bytes on, at level 5) and
consumers decompress; when they do is decided in `pocketmq.client`.

    bit 0       body is compressed
    bits 8-10   0x000 zlib (old clients), 0x100 LZ4, 0x200 zstd, 0x300 zlib

LZ4 and zstd are imported on first use: most programs see neither.
"""

import zlib
from collections.abc import Callable
from typing import Final

from ..errors import BodyError
from .flags import COMPRESSED, COMPRESSION_LZ4, COMPRESSION_MASK, COMPRESSION_ZLIB, COMPRESSION_ZSTD

DEFAULT_LEVEL: Final = 5
"""Official compressLevel, for zlib and zstd alike. LZ4 has no level."""
MAX_BODY_BYTES: Final = 64 * 1024 * 1024
"""Longest body that `decompress` returns: a few bytes can expand without end."""

COMPRESSION_TYPES: Final = {"LZ4": COMPRESSION_LZ4, "ZSTD": COMPRESSION_ZSTD, "ZLIB": COMPRESSION_ZLIB}
"""Official CompressionType names to their sysFlag bits."""


class CompressionError(BodyError):
    """A compressed body is damaged, has an unknown type, or is too long when decompressed."""


def compress(
    body: bytes | memoryview, compression_type: str = "ZLIB", level: int = DEFAULT_LEVEL
) -> tuple[bytes, int]:
    """The compressed body, and the sysFlag bits to set with it. The type is a name, in any case."""
    flags = COMPRESSION_TYPES.get(compression_type.strip().upper())
    if flags is None:
        raise CompressionError(f"Unsupported compress type name: {compression_type}")
    if flags == COMPRESSION_LZ4:
        import lz4.frame

        result = lz4.frame.compress(bytes(body), store_size=False)
    elif flags == COMPRESSION_ZSTD:
        import zstandard

        result = zstandard.ZstdCompressor(level=level, write_content_size=False).compress(body)
    else:
        result = zlib.compress(body, level)
    return result, COMPRESSED | flags


def decompress(
    body: bytes | memoryview, sys_flag: int, *, max_bytes: int = MAX_BODY_BYTES
) -> bytes | memoryview:
    """The decompressed body; the same object if `sys_flag` does not say compressed. Raises CompressionError."""
    if not sys_flag & COMPRESSED:
        return body
    compression = sys_flag & COMPRESSION_MASK
    decompressor = _DECOMPRESSORS.get(compression)
    if decompressor is None:
        raise CompressionError(f"Unknown compress type value: {compression >> 8}")
    return decompressor(body, max_bytes)


def inflate(body: bytes | memoryview, max_bytes: int) -> bytes:
    """The content of one whole zlib stream. Raises CompressionError, also for more than `max_bytes`."""
    inflater = zlib.decompressobj()
    try:
        result = inflater.decompress(body, max_bytes + 1)
    except zlib.error as error:
        raise CompressionError(f"zlib: {error}") from error
    if len(result) > max_bytes:
        raise CompressionError(f"zlib: more than {max_bytes} bytes when decompressed")
    if inflater.eof:
        return result
    raise CompressionError(f"zlib: {len(body)} bytes end before the stream does")


def _from_lz4(body: bytes | memoryview, max_bytes: int) -> bytes:
    import lz4.frame

    decompressor = lz4.frame.LZ4FrameDecompressor()
    try:
        result: bytes = decompressor.decompress(bytes(body), max_length=max_bytes + 1)
    except (RuntimeError, ValueError) as error:
        raise CompressionError(f"lz4: {error}") from error
    if len(result) > max_bytes:
        raise CompressionError(f"lz4: more than {max_bytes} bytes when decompressed")
    if decompressor.eof:
        return result
    raise CompressionError(f"lz4: {len(body)} bytes end before the frame does")


def _from_zstd(body: bytes | memoryview, max_bytes: int) -> bytes:
    import zstandard

    # The size written in the frame cannot be trusted and most frames carry none, so the input goes in small
    # slices: one slice makes at most 32 MiB.
    decompressor = zstandard.ZstdDecompressor().decompressobj()
    pieces: list[bytes] = []
    length = 0
    try:
        for start in range(0, len(body), _SLICE_BYTES):
            piece = decompressor.decompress(body[start : start + _SLICE_BYTES])
            pieces.append(piece)
            length += len(piece)
            if length > max_bytes:
                raise CompressionError(f"zstd: more than {max_bytes} bytes when decompressed")
            if decompressor.eof:
                return b"".join(pieces)
    except zstandard.ZstdError as error:
        raise CompressionError(f"zstd: {error}") from error
    raise CompressionError(f"zstd: {len(body)} bytes end before the frame does")


_SLICE_BYTES: Final = 1024
_DECOMPRESSORS: Final[dict[int, Callable[[bytes | memoryview, int], bytes]]] = {
    0: inflate,
    COMPRESSION_ZLIB: inflate,
    COMPRESSION_LZ4: _from_lz4,
    COMPRESSION_ZSTD: _from_zstd,
}
