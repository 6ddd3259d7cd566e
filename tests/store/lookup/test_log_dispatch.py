"""Dispatching a log in bulk after a crash: the files are the same as after dispatching record by record."""

import shutil
import tempfile
import tracemalloc
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pocketmq.protocol.message.flags import TRANSACTION_COMMIT, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK
from pocketmq.protocol.message.properties import encode_properties
from pocketmq.protocol.message.record import Record, decode_record, encode_record, measure_record
from pocketmq.store import MessageStore, NewMessage, VirtualClock, message_store
from pocketmq.store.log.record_scan import scan_records
from pocketmq.store.lookup import log_dispatch
from pocketmq.store.lookup.dispatch import code_of_tags
from pocketmq.store.lookup.log_dispatch import LogDispatch

from store_batches import leave_as_killed, open_small, put
from stored_files import stored_files

HOUR_MS = 3_600_000
TOPICS = ("orders", "SCHEDULE_TOPIC_XXXX", "long" * 30, "größe")

messages = st.tuples(
    st.sampled_from(TOPICS),
    st.integers(0, 2),
    st.binary(max_size=60),
    st.dictionaries(
        st.sampled_from(["KEYS", "TAGS", "UNIQ_KEY", "DELAY", "other"]),
        st.sampled_from(["1", "a b", " ", "7F000001ABCD18B4AAC20000000000FF", "tag"]),
    ),
    st.sampled_from([0, 0, 0, TRANSACTION_PREPARED, TRANSACTION_COMMIT, TRANSACTION_ROLLBACK]),
    st.sampled_from([8, 8, 8, 20]),
    st.sampled_from([0, 1, 1500, HOUR_MS, -HOUR_MS]),
)
losses = st.lists(st.sampled_from(["index", "consumequeue", "consumequeue/orders/0", "checkpoint"]))


class OneByOne(LogDispatch):
    """The work of LogDispatch, done record by record."""

    def add_all(self, records, base) -> None:
        for record in records:
            self._dispatcher.dispatch_record(record, base + record[0])

    def flush(self) -> None:
        pass


def open_store(directory: Path, clock: VirtualClock) -> MessageStore:
    return open_small(
        directory, clock, mapped_file_size_consume_queue=100, max_hash_slot_num=8, max_index_num=12
    )


def recovered(
    original: Path, directory: Path, *, machine_down: bool
) -> tuple[dict[str, dict[int, bytes]], object]:
    """The files after a start from a copy of a killed store, and what recovery reported."""
    shutil.copytree(original, directory)
    abort = directory / "abort"
    pid, boot, _ = abort.read_text().split()
    abort.write_text(f"{pid} {boot} {0 if machine_down else abort.stat().st_ino}")
    store = open_store(directory, VirtualClock())
    report = store.recovery_report
    leave_as_killed(store)
    return stored_files(directory), report


@settings(max_examples=60)
@example([("orders", 0, b"", {"KEYS": "a b", "TAGS": "tag"}, 0, 8, 0)] * 9, ["index"], False, 3, None)
@example([("orders", 0, b"", {"KEYS": "1"}, 0, 8, 0)] * 9, ["consumequeue"], True, 4, 3)
@given(
    st.lists(messages, max_size=40), losses, st.booleans(), st.integers(1, 9), st.integers(0, 40) | st.none()
)
def test_bulk_dispatch_writes_the_files_of_one_by_one_dispatch(
    sent, lost, machine_down, most_gathered, deleted_before
) -> None:
    folder = Path(tempfile.mkdtemp(prefix="pocketmq-bulk-"))
    try:
        clock = VirtualClock(1_700_000_000_000)
        store = open_store(folder / "original", clock)
        for number, (topic, queue_id, body, properties, sys_flag, host_bytes, passed_ms) in enumerate(sent):
            if number == deleted_before:
                store.delete_topic_queues(
                    "orders"
                )  # its queues begin again at 0, after records of the old ones
            message = NewMessage(topic, queue_id, body, encode_properties(properties))
            message.sys_flag = sys_flag
            message.born_host = bytes(host_bytes)
            assert store.append(message).queue_offset >= 0
            clock.set_now_ms(clock.now_ms() + passed_ms)
        leave_as_killed(store)
        for name in lost:
            path = folder / "original" / name
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        with mock.patch.object(message_store, "LogDispatch", OneByOne):
            expected = recovered(folder / "original", folder / "one", machine_down=machine_down)
        with mock.patch.object(log_dispatch, "_MOST_GATHERED", most_gathered):
            assert recovered(folder / "original", folder / "bulk", machine_down=machine_down) == expected
    finally:
        shutil.rmtree(folder)


records = st.builds(
    Record,
    topic=st.sampled_from((*TOPICS, "long" * 40)),
    queue_id=st.integers(0, 9),
    queue_offset=st.integers(0, 1 << 40),
    position=st.integers(0, 1 << 40),
    body=st.binary(max_size=30),
    properties=st.sampled_from([b"", b"KEYS\x01k\x02"]),
    born_host=st.sampled_from([bytes(8), bytes(20)]),
    store_host=st.sampled_from([bytes(8), bytes(20)]),
    store_timestamp=st.integers(0, 1 << 42),
)


@settings(max_examples=300)
@given(
    st.lists(records, max_size=5),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=3),
    st.integers(0, 120),
    st.booleans(),
)
def test_scan_finds_the_records_that_measuring_finds(written, damage, cut, check_crc) -> None:
    in_pairs = [record for record in written for _ in range(2)]  # a record like the one before is read faster
    data = bytearray(b"".join(map(encode_record, in_pairs)) + bytes(100))
    for at, value in damage:
        data[at % len(data)] = value
    end = max(len(data) - cut, 0)
    view = memoryview(bytes(data))
    expected, at = [], 0
    while (size := measure_record(view, at, end, check_crc=check_crc)) > 0:
        record = decode_record(view[: at + size], at)
        expected.append(
            (
                (at, size, record.queue_id, record.queue_offset, record.sys_flag, record.store_timestamp),
                record.topic,
                bytes(record.properties),
            )
        )
        at += size
    found = [
        (record[:6], record[6].decode("utf-8", "replace"), record[7])
        for record in scan_records(view, 0, end, check_crc=check_crc)
    ]
    assert found == expected


def test_a_length_beyond_the_record_makes_it_invalid() -> None:
    # The byte after the topic, alone and 0xFF, reads as the missing -1.
    record = bytearray(encode_record(Record("orders", 0, 0, 0, b"", b"")))
    record[88] = len(record) - 89 - 1
    record[-1] = 0xFF
    view = memoryview(bytes(record))
    assert measure_record(view, 0, len(view)) <= 0
    assert list(scan_records(view, 0, len(view), check_crc=True)) == []


@pytest.mark.parametrize("machine_down", [False, True])
def test_a_start_writes_index_headers_once_per_batch(open_store, tmp_path, machine_down) -> None:
    store = open_store(max_index_num=1000)
    for number in range(50):
        put(store, KEYS=f"key{number}")
    leave_as_killed(store)
    shutil.rmtree(tmp_path / "store" / "index")
    if machine_down:
        (tmp_path / "store" / "abort").write_text("")
    from pocketmq.store.lookup.index_file import IndexFile

    with mock.patch.object(
        IndexFile, "write_header", autospec=True, side_effect=IndexFile.write_header
    ) as written:
        store = open_store(max_index_num=1000)
    assert store.recovery_report.dispatched_records == 50
    assert written.call_count < 10


def test_long_tags_are_not_kept() -> None:
    tracemalloc.start()
    try:
        for number in range(100):
            code_of_tags(f"{number} {'x' * 3_000}")
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()
