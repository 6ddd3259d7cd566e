"""Compressed bodies: bodies of the official client, round trips, damage, limits."""

import zlib
from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.protocol.message.compression import CompressionError, compress, decompress

from official_vectors import rules

TYPES = ["LZ4", "ZSTD", "ZLIB"]
PLAIN = "".join(f"order {i * 7919 % 1000} " for i in range(300)).encode()
"""The text that was given to the official compressors."""


@pytest.mark.parametrize("version", ["4.9.8", "5.5.0"])
def test_official_bodies_are_decompressed(version: str):
    recorded = rules(version, "compression")
    assert len(recorded) == len(TYPES)
    for name_and_flag, encoded in recorded:
        name, flag = name_and_flag.split()
        assert decompress(b64decode(encoded), 1 | int(flag)) == PLAIN, name
        assert compress(PLAIN, name)[1] == 1 | int(flag)


def test_zlib_is_the_type_if_none_is_set():
    assert decompress(zlib.compress(PLAIN), 1) == PLAIN


def test_an_uncompressed_body_is_returned_without_a_copy():
    body = memoryview(b"plain")
    assert decompress(body, 0x300) is body


@pytest.mark.parametrize("name", TYPES)
@given(body=st.binary(max_size=5000))
def test_round_trip(name: str, body: bytes):
    compressed, flags = compress(memoryview(body), name.lower())
    assert decompress(memoryview(compressed), flags) == body


@pytest.mark.parametrize("name", TYPES)
def test_a_cut_body_is_refused_wherever_it_is_cut(name: str):
    compressed, flags = compress(PLAIN, name)
    for end in range(0, len(compressed) - 4, 7):
        with pytest.raises(CompressionError, match=name.lower()):
            decompress(compressed[:end], flags)


@pytest.mark.parametrize("name", TYPES)
def test_bytes_that_are_no_compressed_stream_are_refused(name: str):
    _, flags = compress(b"", name)
    with pytest.raises(CompressionError):
        decompress(b"\x00not compressed at all" * 3, flags)


@pytest.mark.parametrize("name", TYPES)
def test_a_body_may_reach_the_limit_but_not_exceed_it(name: str):
    compressed, flags = compress(bytes(1_000_000), name)
    assert len(decompress(compressed, flags, max_bytes=1_000_000)) == 1_000_000
    with pytest.raises(CompressionError, match="more than 999999 bytes"):
        decompress(compressed, flags, max_bytes=999_999)


def test_unknown_types_are_refused():
    with pytest.raises(CompressionError, match="Unknown compress type value: 5"):
        decompress(b"", 0x501)
    with pytest.raises(CompressionError, match="Unsupported compress type name: SNAPPY"):
        compress(b"", "SNAPPY")
