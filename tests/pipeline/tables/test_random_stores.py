"""All columns of random stores equal those of each record decoded by itself, whatever the batches are."""

import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pocketmq.pipeline.tables import open_store
from pocketmq.pipeline.tables.arrow import store_table
from pocketmq.protocol.message.compression import compress
from pocketmq.protocol.message.record import Record, decode_records, encode_record

from pipeline.records.record_bytes import RECORDS, row_of

BODY_AT = 88
"""Where the body of a record with IPv4 hosts begins."""
PLAIN = st.builds(
    lambda number, key, body: Record(
        "Orders",
        number % 4,
        number,
        0,
        body,
        f"KEYS\x01{key}\x02TAGS\x01A\x02UNIQ_KEY\x01{number:032X}\x02".encode(),
    ),
    st.integers(0, 1 << 40),
    st.sampled_from(["k", "key", "4711 4712"]),
    st.binary(min_size=1, max_size=30),
)
FORMS = st.one_of(
    st.tuples(PLAIN, st.sampled_from(["as it is", "as it is", "damaged", "ZLIB", "LZ4", "ZSTD"])),
    st.tuples(RECORDS, st.just("as it is")),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(FORMS, min_size=1, max_size=20), st.sampled_from([1, 2, 5, 1 << 14]))
def test_a_store_of_any_records_is_read_as_each_record_alone(
    forms: list[tuple[Record, str]], batch_rows: int
) -> None:
    log, rows = bytearray(), []
    for record, form in forms:
        body, sys_flag = record.body, record.sys_flag
        if form not in ("as it is", "damaged"):
            body, sys_flag = compress(bytes(body), form)
        written = msgspec.structs.replace(record, position=len(log), body=body, sys_flag=sys_flag)
        raw = bytearray(encode_record(written))
        (decoded,) = decode_records(bytes(raw))
        row = row_of(decoded) | {"status": "ok", "body": bytes(record.body)}
        if form == "damaged":
            at = BODY_AT
            raw[at] ^= 1
            row |= {"status": "bad crc", "body": bytes(raw[at : at + len(body)])}
        rows.append(row)
        log += raw
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(store_table, "BATCH_ROWS", batch_rows)
        path = Path(folder) / "commitlog" / f"{0:020}"
        path.parent.mkdir()
        path.write_bytes(log)
        reader = open_store(folder, columns="all", on_corrupt="report", broker_name="broker-a")
        batches = list(reader)
    assert max(batch.num_rows for batch in batches) <= batch_rows
    found = [row for batch in batches for row in batch.to_pylist()]
    for row in found:
        row["properties"] = dict(row["properties"])
        assert row.pop("file") == str(path)
    assert found == rows
