"""Our HPACK decoder beside the library `hpack`: the same blocks of a connection, whole and damaged, to both."""

import time
from typing import Any

import hpack
import pytest
from hpack.huffman import HuffmanEncoder
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
from hpack.table import HeaderTable
from hypothesis import given, settings
from hypothesis import strategies as st
from pocketmq.grpc_endpoint.hpack import decoding, huffman
from pocketmq.grpc_endpoint.hpack.decoding import (
    FIRST_DYNAMIC,
    STATIC,
    TABLE_BYTES,
    Decoder,
    HeaderListTooLong,
)
from pocketmq.grpc_endpoint.hpack.encoding import literal
from pocketmq.grpc_endpoint.hpack.huffman import MalformedBlock

MOST = 8192
HUFFMAN = HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH)
NAMES = st.sampled_from((b":path", b"te", b"x-a", b"x-b", b"user-agent", b"content-type")) | st.binary(
    max_size=12
)
VALUES = (
    st.sampled_from((b"", b"trailers", b"/a", b"application/grpc"))
    | st.binary(max_size=40)
    | st.binary(min_size=120, max_size=300)
)


class RandomEncoder:
    """Writes headers in any of the ways that HPACK allows, as the drawn choices say."""

    def __init__(self, data: Any) -> None:
        self._draw = data.draw
        self._table = HeaderTable()

    def block(self, headers: list[tuple[bytes, bytes]]) -> bytes:
        out = b""
        for _ in range(self._draw(st.sampled_from((0, 0, 0, 1, 2)))):
            size = self._draw(st.integers(0, TABLE_BYTES) | st.integers(0, 150))
            self._table.maxsize = size
            out += number(size, 5, 0x20)
        return out + b"".join(self._header(name, value) for name, value in headers)

    def _header(self, name: bytes, value: bytes) -> bytes:
        found = self._table.search(name, value)
        if found is not None and found[2] is not None and self._draw(st.integers(0, 4)):
            return number(found[0], 7, 0x80)
        bits, pattern = self._draw(st.sampled_from(((6, 0x40), (6, 0x40), (4, 0x00), (4, 0x10))))
        index = found[0] if found is not None and self._draw(st.booleans()) else 0
        if pattern == 0x40:
            self._table.add(name, value)
        return number(index, bits, pattern) + (b"" if index else self._text(name)) + self._text(value)

    def _text(self, text: bytes) -> bytes:
        if self._draw(st.booleans()):
            text = HUFFMAN.encode(text)
            return number(len(text), 7, 0x80) + text
        return number(len(text), 7, 0x00) + text


def number(value: int, bits: int, pattern: int) -> bytes:
    out: bytearray = hpack.hpack.encode_integer(value, bits)
    out[0] |= pattern
    return bytes(out)


def theirs(decoder: hpack.Decoder, block: bytes) -> list[tuple[str, str]] | None:
    """`None` if the library refuses the block."""
    try:
        found: Any = list(decoder.decode(block, raw=True))
    except (hpack.HPACKError, IndexError):
        return None
    return [(str(name, "latin-1"), str(value, "utf-8", "replace")) for name, value in found]


def ours(decoder: Decoder, block: bytes) -> list[tuple[str, str]] | None:
    try:
        return [(name, value) for name, value, _ in decoder.decode(block)]
    except (MalformedBlock, HeaderListTooLong):
        return None


def compare(blocks: list[bytes]) -> bool:
    """Blocks of one connection, until one is refused by both; whether one was."""
    judge, decoder = hpack.Decoder(max_header_list_size=MOST), Decoder(MOST)
    for block in blocks:
        expected = theirs(judge, block)
        assert ours(decoder, block) == expected
        if expected is None:
            return True
        table = judge.header_table
        assert [size for _, _, size in decoder._table[FIRST_DYNAMIC:]] == [
            len(name) + len(value) + 32 for name, value in table.dynamic_entries
        ]
    return False


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(st.tuples(NAMES, VALUES), max_size=8), min_size=1, max_size=12), st.data())
def test_blocks_of_a_connection_are_read_alike(lists: list[list[tuple[bytes, bytes]]], data: Any) -> None:
    encoder = RandomEncoder(data)
    assert not compare([encoder.block(headers) for headers in lists])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(st.tuples(NAMES, VALUES), max_size=4), min_size=1, max_size=4), st.data())
def test_damaged_blocks_are_refused_by_both_or_read_alike(
    lists: list[list[tuple[bytes, bytes]]], data: Any
) -> None:
    encoder = RandomEncoder(data)
    blocks = [encoder.block(headers) for headers in lists]
    which = data.draw(st.integers(0, len(blocks) - 1))
    block = bytearray(blocks[which])
    place = data.draw(st.integers(0, len(block)))
    change = data.draw(st.sampled_from(("cut", "flip", "insert")))
    if change == "cut":
        del block[place:]
    else:
        block[place : place + (change == "flip")] = data.draw(st.binary(min_size=1, max_size=2))
    blocks[which] = bytes(block)
    compare(blocks)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4))
def test_random_bytes_are_refused_by_both_or_read_alike(blocks: list[bytes]) -> None:
    compare(blocks)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60), st.binary(max_size=3))
def test_huffman_texts_are_read_alike(text: bytes, tail: bytes) -> None:
    whole = HUFFMAN.encode(text)
    assert huffman.decode(whole) == text.decode("latin-1")
    compare([b"\x00\x01a" + number(len(whole) + len(tail), 7, 0x80) + whole + tail])


def test_every_symbol_has_its_code() -> None:
    for symbol in range(256):
        assert huffman.decode(HUFFMAN.encode(bytes((symbol, symbol)))) == chr(symbol) * 2


def test_the_static_table_is_that_of_the_library() -> None:
    assert [(name.encode(), value.encode()) for name, value, _ in STATIC[1:]] == list(
        HeaderTable.STATIC_TABLE
    )


def test_the_examples_of_the_standard_are_read() -> None:
    """RFC 7541, C.4: three requests of one connection, with Huffman."""
    decoder = Decoder(MOST)
    blocks = (
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    )
    found = [dict(ours(decoder, bytes.fromhex(block)) or ()) for block in blocks]
    assert found[0] == {":method": "GET", ":scheme": "http", ":path": "/", ":authority": "www.example.com"}
    assert found[1] == found[0] | {"cache-control": "no-cache"}
    assert (found[2]["custom-key"], found[2][":path"]) == ("custom-value", "/index.html")


REFUSED = {
    "index 0": b"\x80",
    "index beyond the table": b"\xbe",
    "name beyond the table": b"\x7e\x01x",
    "number without end": b"\xff" + b"\x80" * 20,
    "number beyond 2^35": b"\xff\xff\xff\xff\xff\xff\x01",
    "table too large": b"\x3f\xe2\x1f",
    "size after a header": b"\x82\x20",
    "text cut": b"\x00\x05ab",
    "value missing": b"\x41",
    "length missing": b"\x00",
    "padding with a zero": b"\x00\x01a\x81\xfe",
    "padding of eight bits": b"\x00\x01a\x82\x1f\xff",
    "end mark": b"\x00\x01a\x84\xff\xff\xff\xff",
    "end mark inside": b"\x00\x01a\x85\xff\xff\xff\xfc\x1f",
}


@pytest.mark.parametrize("block", REFUSED.values(), ids=REFUSED)
def test_blocks_that_break_a_rule_are_refused(block: bytes) -> None:
    assert compare([block])
    with pytest.raises(MalformedBlock):
        Decoder(MOST).decode(block)


def test_the_longest_header_list_passes_and_one_byte_more_does_not() -> None:
    for extra in (0, 1):
        value = bytes(MOST - 64 - 2 + extra)
        block = b"\x00\x01a" + number(len(value), 7, 0) + value + b"\x00\x01b\x00"
        assert compare([block]) is bool(extra)
    with pytest.raises(HeaderListTooLong, match="more than 8192 bytes"):
        Decoder(MOST).decode(b"\x40\x01a\x7f\xa1\x1e" + b"x" * 4000 + b"\xbe" * 3)


def test_a_header_larger_than_the_table_empties_it() -> None:
    decoder = Decoder(MOST)
    decoder.decode(b"\x40\x01a\x01b")
    decoder.decode(b"\x40\x01c" + number(5000, 7, 0) + bytes(5000))
    with pytest.raises(MalformedBlock):
        decoder.decode(b"\xbe")


def test_remembered_texts_have_a_limit() -> None:
    for value in range(3000):
        text = HUFFMAN.encode(b"%d" % value)
        Decoder(MOST).decode(b"\x00\x01a" + number(len(text), 7, 0x80) + text)
        assert 0 < len(decoding._known) <= decoding._KNOWN


WORST = {
    "names of the table": b"\x82" * 16_384,
    "literals": b"\x40\x00\x00" * 5_400,
    "sizes": b"\x20\x3f\xe1\x1f" * 4_096,
    "Huffman": b"\x00\x01a" + number(16_000, 7, 0x80) + HUFFMAN.encode(bytes(range(256)) * 60)[:16_000],
    "numbers": b"\x00\x7f\x80\x80\x80\x80\x00" * 2_000,
}


@pytest.mark.parametrize("block", WORST.values(), ids=WORST)
def test_a_block_of_the_longest_size_costs_milliseconds(block: bytes) -> None:
    began = time.thread_time()
    ours(Decoder(MOST), block)
    assert time.thread_time() - began < 0.5


@given(st.binary(min_size=1, max_size=300), st.binary(max_size=300))
def test_what_we_write_the_library_reads(name: bytes, value: bytes) -> None:
    assert list(hpack.Decoder().decode(literal(name, value), raw=True)) == [(name, value)]
