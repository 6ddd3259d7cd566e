"""Columns decoded as arrays: rare forms among plain ones, and damage. Those of any records: test_random_stores.py."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pocketmq.pipeline.tables.records.columns import MESSAGE_COLUMNS
from pocketmq.pipeline.tables.records.records import Records, scan
from pocketmq.pipeline.tables.records.scans import HEAD
from pocketmq.protocol.message import record as layout
from pocketmq.protocol.message.compression import compress
from pocketmq.protocol.message.record import MAGIC_V2, Record, encode_record

from pipeline.records.record_bytes import RECORDS, stored


def records_in(data: bytes, broker_name: str | None = None) -> Records:
    return scan(data, 0, len(data), most=1000, broker_name=broker_name)


def columns_of(data: bytes, broker_name: str | None = "broker-a") -> dict[str, list[object]]:
    records = records_in(data, broker_name)
    assert records.sizes.sum() == len(data)
    return {name: records.column(name).to_pylist() for name in MESSAGE_COLUMNS}


@settings(max_examples=60)
@given(st.lists(RECORDS, min_size=1, max_size=4), st.data())
def test_what_a_scan_finds_can_be_decoded_wherever_a_byte_is_wrong(
    records: list[Record], data: st.DataObject
) -> None:
    raw = bytearray(b"".join(map(encode_record, records)))
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] = data.draw(st.integers(0, 255))
    found = records_in(bytes(raw))
    for name in MESSAGE_COLUMNS:
        if name not in ("bornTimestamp", "storeTimestamp"):  # any number of ms, also beyond Arrow's range
            assert len(found.column(name)) == len(found)


@pytest.mark.parametrize("kind", ["ZLIB", "LZ4", "ZSTD"])
def test_compressed_bodies_are_decompressed(kind: str) -> None:
    body, flag = compress(b"long " * 1000, kind)
    data = encode_record(Record("T", 0, 0, 0, body, b"", sys_flag=flag)) + encode_record(
        Record("T", 0, 1, 0, b"y", b"")
    )
    assert columns_of(data)["body"] == [b"long " * 1000, b"y"]
    as_stored = records_in(data).keep_bodies_compressed()
    assert as_stored.column("body").to_pylist() == [body, b"y"]
    assert not as_stored.bad_crcs().any()


def test_a_body_whose_crc_is_wrong_is_found() -> None:
    data = bytearray(stored(10))
    data[records_in(bytes(data)).starts[3] + 88] ^= 1
    assert records_in(bytes(data)).bad_crcs().nonzero()[0].tolist() == [3]


def test_no_records_give_empty_columns_of_the_right_type() -> None:
    records = records_in(b"")
    for name, (_, kind) in MESSAGE_COLUMNS.items():
        column = records.column(name)
        assert (len(column), column.type) == (0, kind), name


def test_the_numpy_dtype_of_a_head_has_the_offsets_of_the_record_layout():
    places = {
        "storeSize": layout.SIZE_AT,
        "magic": layout.MAGIC_AT,
        "bodyCRC": layout.BODY_CRC_AT,
        "queueId": layout.QUEUE_ID_AT,
        "flag": layout.FLAG_AT,
        "queueOffset": layout.QUEUE_OFFSET_AT,
        "physicalOffset": layout.PHYSICAL_OFFSET_AT,
        "sysFlag": layout.SYS_FLAG_AT,
        "bornTimestamp": layout.BORN_TIMESTAMP_AT,
        "bornHost": layout.BORN_HOST_AT,
    }
    assert HEAD.fields is not None
    assert {name: HEAD.fields[name][1] for name in places} == places
    assert HEAD.itemsize == layout.head_for(0).size


def test_one_record_of_each_rare_form_among_many_plain_ones_is_read_as_alone() -> None:
    """A compressed body, one that cannot be decompressed, IPv6 hosts, bytes that are not UTF-8, a name twice."""
    packed, flag = compress(b"long " * 1000, "ZLIB")
    forms: dict[int, dict[str, object]] = {
        5: {"body": packed, "sys_flag": flag},
        6: {"body": b"not compressed", "sys_flag": flag},
        20: {"store_host": bytes(range(20)), "sys_flag": 32},
        21: {"born_host": bytes(range(20)), "sys_flag": 16},
        40: {"properties": b"KEYS\x01\xff\xfe\x02"},
        41: {"properties": b"KEYS\x01a\x02b\x01c\x02KEYS\x01last\x02"},
        42: {"properties": b"KEYS\x02\x01TAGS\x01t"},
        55: {"topic": "Other", "magic": MAGIC_V2},
    }
    plain: dict[str, object] = {
        "topic": "T",
        "queue_id": 1,
        "body": b"body",
        "properties": b"KEYS\x01k\x02TAGS\x01t\x02",
    }
    alone = []
    for number in range(60):
        record = {**plain, "queue_offset": number, "position": number, **forms.get(number, {})}
        alone.append(encode_record(Record(**record)))  # type: ignore[arg-type]
    together = columns_of(b"".join(alone))
    for row, raw in enumerate(alone):
        assert {name: [values[row]] for name, values in together.items()} == columns_of(raw)
    assert together["body"][5] == b"long " * 1000
    assert together["keys"][40:42] == ["\N{REPLACEMENT CHARACTER}" * 2, "last"]
