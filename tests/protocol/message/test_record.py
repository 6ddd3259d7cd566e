"""Records against the vectors computed with the official classes, and round trips."""

import msgspec
import pocketmq.protocol.message.record as record_module
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.protocol.message.offset_id import decode_message_id, encode_message_id, pack_host, unpack_host
from pocketmq.protocol.message.record import (
    BLANK,
    BLANK_MAGIC,
    FILLER,
    INVALID,
    MAGIC_V2,
    Record,
    RecordError,
    body_crc,
    crc_property,
    decode_record,
    decode_records,
    encode_record,
    has_valid_crc_property,
    head_for,
    measure_record,
    position_of,
    properties_around,
    properties_of,
    queue_offset_of,
    read_rows,
    restore_record,
    store_timestamp_of,
    topic_of,
)

VECTOR_A_BYTES = bytes.fromhex(
    "00000083DAA320A731EDD7A100000003000000000000000000000007000000004000000000000000"
    "0000018BCFE568000A0000080000C3CB0000018BCFE568050A00000900002A9F000000000000000000000000"
    "0000000968656C6C6F20726D710A64656D6F2D746F7069630015544147530154616741024B455953016B65792D3102"
)
VECTOR_A = Record(
    topic="demo-topic",
    queue_id=3,
    queue_offset=7,
    position=1073741824,
    body=b"hello rmq",
    properties=b"TAGS\x01TagA\x02KEYS\x01key-1\x02",
    born_timestamp=1700000000000,
    born_host=pack_host("10.0.0.8", 50123),
    store_timestamp=1700000000005,
    store_host=pack_host("10.0.0.9", 10911),
    body_crc=837670817,
    size=131,
)

hosts = st.binary(min_size=8, max_size=8) | st.binary(min_size=20, max_size=20)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
records = st.builds(
    Record,
    topic=st.text(min_size=1, max_size=160),
    queue_id=int32,
    queue_offset=int64,
    position=int64,
    body=st.binary(max_size=300),
    properties=st.binary(max_size=300),
    flag=int32,
    sys_flag=st.integers(0, 0xFFF),
    born_timestamp=int64,
    born_host=hosts,
    store_timestamp=int64,
    store_host=hosts,
    reconsume_times=int32,
    prepared_transaction_offset=int64,
)


def test_official_vector_is_encoded_byte_for_byte():
    assert encode_record(VECTOR_A) == VECTOR_A_BYTES


def test_official_vector_is_decoded_field_for_field():
    assert decode_record(VECTOR_A_BYTES) == VECTOR_A
    assert body_crc(b"hello rmq") == 837670817
    assert store_timestamp_of(memoryview(VECTOR_A_BYTES)) == 1700000000005


def test_message_id_of_the_official_vector():
    text = encode_message_id(VECTOR_A.store_host, VECTOR_A.position)
    assert text == "0A00000900002A9F0000000040000000"
    assert decode_message_id(text).position == 1073741824
    assert unpack_host(decode_message_id(text).host) == ("10.0.0.9", 10911)


@given(records)
def test_any_record_survives_the_round_trip(record: Record):
    data = encode_record(record)
    decoded = decode_record(b"junk" + data + b"more", 4)
    assert measure_record(memoryview(data), 0, len(data)) == len(data) == decoded.size
    assert decoded.body_crc == body_crc(record.body)
    assert (decoded.magic == MAGIC_V2) == (len(record.topic.encode()) > 127)
    for name in ("topic", "queue_id", "queue_offset", "position", "body", "properties", "flag"):
        assert getattr(decoded, name) == getattr(record, name)
    for name in ("born_timestamp", "born_host", "store_timestamp", "store_host", "reconsume_times"):
        assert getattr(decoded, name) == getattr(record, name)
    assert decoded.sys_flag & ~0x30 == record.sys_flag & ~0x30


@given(records)
def test_every_cut_of_a_record_is_invalid(record: Record):
    data = memoryview(encode_record(record))
    for end in range(len(data)):
        assert measure_record(data, 0, end) == INVALID


@given(st.data(), records)
def test_a_flipped_length_or_body_bit_never_raises_and_body_damage_is_seen(
    data: st.DataObject, record: Record
):
    encoded = bytearray(encode_record(record))
    bit = data.draw(st.integers(0, len(encoded) * 8 - 1))
    encoded[bit // 8] ^= 1 << bit % 8
    size = measure_record(memoryview(encoded), 0, len(encoded))
    assert size == INVALID or 0 < size <= len(encoded)
    body_start = len(encoded) - len(record.properties) - len(record.topic.encode())
    head = {16: 88, 28: 100, 40: 112}[len(record.born_host) + len(record.store_host)]
    if head <= bit // 8 < head + len(record.body) < body_start:
        assert size == INVALID


@given(st.data(), records)
def test_a_damaged_record_is_refused_by_the_decoder_where_it_is_not_measured(
    data: st.DataObject, record: Record
):
    encoded = bytearray(b"junk" + encode_record(record) + b"more")
    field = data.draw(st.sampled_from([0, 3, 4, 7, 39, 84, 87, 96, 99, 108, 111, len(encoded) // 2]))
    at = min(4 + field, len(encoded) - 1)
    encoded[at] = data.draw(st.integers(0, 255))
    damaged = memoryview(encoded)[: data.draw(st.integers(len(encoded) - 8, len(encoded)))]
    size = measure_record(damaged, 4, len(damaged), check_crc=False)
    if size > 0:
        decoded = decode_record(damaged, 4)
        assert decoded.size == size
        assert decoded.topic == topic_of(damaged[4:])
        assert decoded.properties == properties_of(damaged[4:])
    else:
        with pytest.raises(RecordError):
            decode_record(damaged, 4)


@given(st.binary(max_size=400))
def test_random_bytes_are_measured_without_an_exception(data: bytes):
    assert measure_record(memoryview(data), 0, len(data)) <= len(data)


@given(records)
def test_one_field_of_a_record_is_read_as_the_whole_record_has_it(record: Record):
    encoded = memoryview(encode_record(record))
    whole = decode_record(encoded)
    assert queue_offset_of(encoded) == whole.queue_offset
    assert position_of(encoded) == whole.position
    assert store_timestamp_of(encoded) == whole.store_timestamp
    assert topic_of(encoded) == whole.topic
    assert properties_of(encoded) == whole.properties


def test_filler_is_distinguished_from_a_record():
    data = memoryview(FILLER.pack(4096, BLANK_MAGIC))
    assert measure_record(data, 0, 8) == BLANK


def test_zeros_are_no_record():
    assert measure_record(memoryview(bytes(200)), 0, 200) == INVALID
    with pytest.raises(RecordError, match="no record at byte 0"):
        decode_record(bytes(200))


def test_records_of_a_pull_reply_are_decoded_in_order():
    assert [record.queue_offset for record in decode_records(VECTOR_A_BYTES * 3)] == [7, 7, 7]
    with pytest.raises(RecordError):
        list(decode_records(VECTOR_A_BYTES + VECTOR_A_BYTES[:-1]))


def test_crc_property_covers_the_record_before_it_and_has_reversed_digits():
    start = VECTOR_A_BYTES
    whole = start + crc_property(start)
    digits = whole[-11:-1].decode()
    assert int(digits[::-1]) == body_crc(start)
    assert len(whole) - len(start) == 20
    assert has_valid_crc_property(memoryview(whole))
    assert not has_valid_crc_property(memoryview(b"x" + whole[1:]))


def ordinary_rows(data: bytes) -> list[tuple[object, ...]] | str:
    """What `read_rows` has to return, by the decoder of whole records; the error it has to raise."""
    rows, position = [], 0
    try:
        for record in decode_records(data):
            place = record.queue_id, record.queue_offset, record.reconsume_times, record.sys_flag
            head, end = position + head_for(record.sys_flag).size, position + record.size
            around = data[position:head] + data[head + len(record.body) : end]
            rows.append((bytes(record.body), record.topic, *place, around, position))
            position = end
    except RecordError as error:
        return str(error)
    return rows


def quick_rows(data: bytes) -> list[tuple[object, ...]] | str:
    try:
        return [*read_rows(data)]
    except RecordError as error:
        return str(error)


@given(st.lists(records, max_size=6), st.integers(1, 3))
def test_rows_of_a_reply_are_those_of_its_records(several: list[Record], repeats: int):
    data = b"".join(map(encode_record, several)) * repeats
    assert quick_rows(data) == ordinary_rows(data)


@given(records)
def test_a_record_is_restored_from_what_is_around_its_body(record: Record):
    [whole] = decode_records(encode_record(record))
    [(body, *_, around, _)] = read_rows(encode_record(record))
    assert restore_record(around, body) == whole
    assert properties_around(around) == whole.properties
    other = restore_record(around, body + b"x")
    assert other == msgspec.structs.replace(whole, body=bytes(len(body)))


@given(st.data(), st.lists(records, min_size=1, max_size=3))
def test_rows_of_a_damaged_reply_fail_as_its_records_do(data: st.DataObject, several: list[Record]):
    encoded = bytearray(b"".join(map(encode_record, several)))
    for _ in range(data.draw(st.integers(0, 3))):
        bit = data.draw(st.integers(0, len(encoded) * 8 - 1))
        encoded[bit // 8] ^= 1 << bit % 8
    cut = bytes(encoded[: data.draw(st.integers(0, len(encoded)))])
    assert quick_rows(cut) == ordinary_rows(cut)


@given(st.binary(max_size=400))
def test_random_bytes_have_no_rows(data: bytes):
    assert quick_rows(data) == ordinary_rows(data)


def test_many_topics_do_not_fill_the_table_of_tails():
    for number in range(5000):
        read_rows(encode_record(msgspec.structs.replace(VECTOR_A, topic=f"topic-{number}")))
    assert len(record_module._tails) <= record_module._MAX_TAILS
