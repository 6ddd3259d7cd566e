"""Batch bodies: the documented bytes, round trips, damage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.batch import (
    MAX_ELEMENTS,
    MAX_KEYS,
    BatchElement,
    decode_batch,
    encode_batch,
    is_storable,
)

elements = st.lists(
    st.builds(
        BatchElement,
        flag=st.integers(-(2**31), 2**31 - 1),
        body=st.binary(max_size=100),
        properties=st.binary(max_size=100),
    )
)


def test_one_element_has_the_documented_bytes():
    data = encode_batch([BatchElement(flag=5, body=b"hello", properties=b"k\x01v\x02")])
    assert data.hex() == "0000001f" + "00000000" * 2 + "00000005" + "0000000568656c6c6f" + "00046b017602"


@given(elements)
def test_round_trip(batch: list[BatchElement]):
    assert decode_batch(encode_batch(batch)) == batch


@given(elements.filter(len), st.data())
def test_a_cut_batch_is_refused_or_ends_between_elements(batch: list[BatchElement], data: st.DataObject):
    encoded = encode_batch(batch)
    cut = data.draw(st.integers(0, len(encoded) - 1))
    try:
        decoded = decode_batch(encoded[:cut])
    except BodyError:
        return
    assert decoded == batch[: len(decoded)]


def test_total_size_is_ignored():
    data = bytearray(encode_batch([BatchElement(0, b"a", b"")]))
    data[:4] = b"\x7f\xff\xff\xff"
    assert decode_batch(bytes(data)) == [BatchElement(0, b"a", b"")]


def test_negative_lengths_are_refused():
    data = bytearray(encode_batch([BatchElement(0, b"a", b"")]))
    data[16:20] = b"\xff\xff\xff\xff"
    with pytest.raises(BodyError, match="body of -1 bytes"):
        decode_batch(bytes(data))


def test_properties_longer_than_a_record_can_hold_are_refused():
    with pytest.raises(BodyError, match="32768"):
        encode_batch([BatchElement(0, b"", bytes(32768))])


@pytest.mark.parametrize(
    ("count", "keys", "is_stored"),
    [
        (MAX_ELEMENTS, 0, True),
        (MAX_ELEMENTS + 1, 0, False),
        (2, MAX_KEYS // 2, True),
        (2, MAX_KEYS // 2 + 1, False),
    ],
)
def test_a_batch_has_limited_messages_and_keys(count: int, keys: int, is_stored: bool) -> None:
    text = b"KEYS\x01" + b" " * keys + b"\x02" if keys else b""
    assert is_storable(encode_batch([BatchElement(0, b"", text)] * count)) is is_stored


def test_blanks_in_bodies_are_no_keys() -> None:
    assert is_storable(encode_batch([BatchElement(0, b" " * MAX_KEYS, b"")] * 3))


@pytest.mark.parametrize("cut", [1, 5, 21, 23])
def test_a_long_body_that_cannot_be_read_is_left_to_its_reader(cut: int) -> None:
    body = encode_batch([BatchElement(0, b" " * MAX_KEYS, b"")] * 3)
    assert is_storable(body[:-cut])
    assert is_storable(body[:16] + b"\xff\xff\xff\xff" + body[20:])
