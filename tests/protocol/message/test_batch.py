"""Batch bodies: the documented bytes, round trips, damage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.batch import (
    MAX_ELEMENTS,
    MAX_KEYS,
    BatchElement,
    alike_elements,
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


IDS = st.text("0123456789ABCDEFabcdef", min_size=32, max_size=32).map(str.encode)


@given(
    st.integers(-(2**31), 2**31 - 1),
    st.sampled_from([b"", b"a\x01b\x02", b"X"]),
    st.sampled_from([b"", b"\x02", b"\x02WAIT\x01true\x02", b"A"]),
    st.lists(st.tuples(st.binary(max_size=5) | st.just(b"same!"), IDS), min_size=1, max_size=9),
)
def test_elements_that_differ_in_body_and_id_only_are_alike(flag, before, behind, messages):
    before += b"UNIQ_KEY\x01"
    data = encode_batch(
        [BatchElement(flag, body, before + unique_id + behind) for body, unique_id in messages]
    )
    found = alike_elements(data)
    assert found is not None
    assert (found.flag, found.before_id, found.behind_id) == (flag, before, behind)
    assert list(zip(found.bodies, found.unique_ids, strict=True)) == messages


TEXTS = st.lists(
    st.sampled_from([b"UNIQ_KEY", b"\x01", b"\x02", b"0" * 32, b"1" * 32, b"A", b"\xff", b"0" * 31]),
    max_size=9,
).map(b"".join)


@given(
    st.lists(
        st.builds(BatchElement, st.integers(0, 1), st.sampled_from([b"", b"ab", b"cd"]), TEXTS), max_size=4
    ),
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 255)), max_size=2),
    st.integers(0, 300),
)
def test_elements_that_count_as_alike_are_those_that_decoding_gives(batch, flips, cut):
    data = bytearray(encode_batch(batch))
    for at, value in flips:
        data[at : at + 1] = bytes([value]) if at < len(data) else b""
    found = alike_elements(bytes(data[:cut]))
    if found is None:
        return
    elements = [
        BatchElement(found.flag, body, found.before_id + unique_id + found.behind_id)
        for body, unique_id in zip(found.bodies, found.unique_ids, strict=True)
    ]
    assert elements == decode_batch(bytes(data[:cut]))


@pytest.mark.parametrize(
    "other", [b"UNIQ_KEY\x01" + b"1" * 31 + b"\x02", b"UNIQ_KEY\x01" + b"\x02" * 32, b""]
)
def test_elements_without_ids_of_32_letters_and_digits_are_not_alike(other):
    alike = BatchElement(0, b"a", b"UNIQ_KEY\x01" + b"1" * 32)
    assert alike_elements(encode_batch([alike, alike])) is not None
    assert alike_elements(encode_batch([alike, BatchElement(0, b"a", other)])) is None
    assert alike_elements(encode_batch([BatchElement(0, b"a", other), alike])) is None
    assert alike_elements(b"") is None


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
