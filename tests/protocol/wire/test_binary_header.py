"""The binary header: its bytes, its limits, and that remembered shapes of earlier headers never change a result.

`test_frame.py` compares how the official readers treat broken headers.
"""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pocketmq.protocol.errors import FrameError
from pocketmq.protocol.wire import binary_header
from pocketmq.protocol.wire.binary_header import decode_binary_header, encode_binary_header
from pocketmq.protocol.wire.command import ROCKETMQ, Command


def read(header: bytes, body: bytes | None = None) -> Command:
    return decode_binary_header(memoryview(header), None if body is None else memoryview(body))


def header_of(entries: list[tuple[bytes, bytes]], remark: bytes = b"") -> bytes:
    """Written here by hand from the layout, so that writer and reader are not checked only against each other."""
    fields = b"".join(
        struct.pack(">h", len(key)) + key + struct.pack(">i", len(value)) + value for key, value in entries
    )
    head = struct.pack(">hbhiii", 310, 9, 401, 7, 2, len(remark))
    return head + remark + struct.pack(">i", len(fields)) + fields


def test_every_member_is_where_the_layout_says() -> None:
    command = Command(310, 7, 2, "nö", {"a": "pg", "e": "-1"}, None, "GO", 401, ROCKETMQ)
    written = encode_binary_header(command)
    assert written == header_of([(b"a", b"pg"), (b"e", b"-1")], "nö".encode())
    assert written[:17].hex(" ", 1) == "01 36 09 01 91 00 00 00 07 00 00 00 02 00 00 00 03"
    assert read(written) == command


def test_no_remark_and_no_fields_are_two_zero_lengths() -> None:
    written = encode_binary_header(Command(105, 1, header_type=ROCKETMQ))
    assert len(written) == 21
    assert written[13:] == bytes(8)
    assert read(written) == Command(105, 1, header_type=ROCKETMQ)


@pytest.mark.parametrize("code", [0x8000, 200050, -0x8001])
def test_a_code_of_more_than_16_bits_is_refused_by_the_writer(code: int) -> None:
    with pytest.raises(FrameError, match=str(code)):
        encode_binary_header(Command(code))


@pytest.mark.parametrize("code", [0, 0x7FFF, -0x8000])
def test_a_code_of_16_bits_is_read_back(code: int) -> None:
    assert read(encode_binary_header(Command(code))).code == code


@pytest.mark.parametrize("name", ["k", "k" * 127, "k" * 128, "\u00fc"])
@pytest.mark.parametrize("value", ["v", "v" * 127, "v" * 128, "v" * 70_000, "\u00fc", "\u20ac" * 50])
def test_fields_are_written_as_the_layout_says_whatever_their_length_and_letters(
    name: str, value: str
) -> None:
    fields = {"a": "1", name: value, "z": "2"}
    command = Command(310, 7, 2, fields=fields, version=401, header_type=ROCKETMQ, language="CPP")
    entries = [(key.encode(), text.encode()) for key, text in fields.items()]
    written = encode_binary_header(command)
    assert written[3:] == header_of(entries)[3:]
    assert read(written).fields == fields


def test_a_value_that_is_no_utf_8_is_read_alike_with_a_remembered_shape() -> None:
    for value in (b"ab", b"\xffb", b"\xc3\xbc"):
        assert read(header_of([(b"k", value)])).fields == {"k": value.decode("utf-8", "replace")}


def test_an_empty_value_is_an_absent_field() -> None:
    assert read(header_of([(b"a", b""), (b"b", b"x")])).fields == {"b": "x"}


def test_a_header_cut_anywhere_is_refused() -> None:
    whole = header_of([(b"topic", b"T"), (b"queueId", b"0")], b"remark")
    read(whole)
    for length in range(len(whole)):
        with pytest.raises(FrameError):
            read(whole[:length])


def test_a_wrong_length_is_refused_or_yields_only_bytes_of_the_header() -> None:
    whole = header_of([(b"topic", b"T"), (b"queueId", b"0")], b"remark")
    for position in range(len(whole)):
        for byte in (0x00, 0x7F, 0x80, 0xFF):
            damaged = whole[:position] + bytes([byte]) + whole[position + 1 :]
            try:
                seen = read(damaged, b"body")
            except FrameError:
                continue
            text = "".join(f"{key}{value}" for key, value in (seen.fields or {}).items())
            assert len(text) <= len(whole)
            assert seen.body == b"body"


texts = st.text(min_size=1, max_size=6)
entries = st.lists(
    st.tuples(st.sampled_from(["a", "b", "ab", "topic", "ключ"]), texts), min_size=1, max_size=4
)


@settings(max_examples=300)
@given(st.lists(entries, min_size=1, max_size=6))
def test_headers_are_read_alike_with_and_without_earlier_ones(
    headers: list[list[tuple[str, str]]],
) -> None:
    written = [header_of([(key.encode(), value.encode()) for key, value in fields]) for fields in headers]
    in_a_row = [read(each).fields for each in written]
    alone = []
    for each in written:
        binary_header._shapes.clear()
        alone.append(read(each).fields)
    assert in_a_row == alone == [dict(fields) for fields in headers]


def test_a_header_of_the_same_size_with_other_fields_is_read_correctly() -> None:
    two, one = [(b"a", b"1"), (b"b", b"2")], [(b"a", b"1\x00\x01b\x00\x00\x00\x022")]
    assert len(header_of(two)) == len(header_of(one))
    read(header_of(two))
    assert read(header_of(one)).fields == {"a": "1\x00\x01b\x00\x00\x00\x022"}


def test_remembered_shapes_have_a_limit() -> None:
    for size in range(1, 3000):
        read(header_of([(b"k", b"v" * size)]))
    assert len(binary_header._shapes) <= binary_header._MAX_SHAPES


def test_header_with_a_huge_name_is_read_but_not_remembered() -> None:
    before = len(binary_header._shapes)
    for length in range(20_000, 20_010):
        assert read(header_of([(b"n" * length, b"v")])).fields == {"n" * length: "v"}
    assert len(binary_header._shapes) == before


def test_many_fields_are_refused() -> None:
    entries = [(str(number).encode(), b"v") for number in range(5001)]
    assert len(read(header_of(entries[:-1])).fields or {}) == 5000
    with pytest.raises(FrameError, match="fields"):
        read(header_of(entries))
