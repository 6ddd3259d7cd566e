"""Reading a queue: statuses, next offsets, limits, filters, deleted records. Views share memory with the log."""

import pytest
from pocketmq.protocol.message.properties import tags_code
from pocketmq.protocol.message.record import decode_record, decode_records
from pocketmq.store import GetStatus
from pocketmq.store.lookup.queue_unit import UNIT
from pocketmq.store.reading.message_reader import SMALL_RECORD_BYTES

from store_batches import put, records_of

GIB = 1 << 30


def fill(store, count, **arguments):
    for number in range(count):
        put(store, body=b"%d" % number, **arguments)


def numbers(result):
    return [record.queue_offset for view in result.views for record in decode_records(view)]


def summary(result):
    return result.status.name, result.next_offset, result.min_offset, result.max_offset


def test_statuses_and_next_offsets_outside_the_messages(open_store):
    store = open_store()
    assert summary(store.get_message("orders", 0, 7, 32)) == ("NO_MESSAGE_IN_QUEUE", 0, 0, 0)
    fill(store, 60)
    while store.delete_oldest_log_file():
        pass
    minimum = store.min_offset("orders", 0)
    assert minimum > 1
    assert summary(store.get_message("orders", 0, 1, 32)) == ("OFFSET_TOO_SMALL", minimum, minimum, 60)
    assert summary(store.get_message("orders", 0, 60, 32)) == ("OFFSET_OVERFLOW_ONE", 60, minimum, 60)
    assert summary(store.get_message("orders", 0, 61, 32)) == ("OFFSET_OVERFLOW_BADLY", 60, minimum, 60)
    assert summary(store.get_message("orders", 1, 3, 32)) == ("NO_MESSAGE_IN_QUEUE", 0, 0, 0)


def test_slave_corrects_offsets_only_if_it_is_configured_to(open_store):
    store = open_store()
    fill(store, 2)
    for settings, expected in (({}, 99), ({"offset_check_in_slave": True}, 2)):
        store.close()
        store = open_store(broker_role="SLAVE", **settings)
        assert store.get_message("orders", 0, 99, 32).next_offset == expected


def test_reading_creates_no_queue(open_store, tmp_path):
    store = open_store()
    store.get_message("nobody", 3, 0, 32)
    assert store.consume_queue("nobody", 3) is None
    assert not (tmp_path / "store" / "consumequeue").exists()


def test_neighbouring_records_share_one_view(open_store):
    store = open_store(mapped_file_size_commit_log=65536)
    for topic in ("orders", "orders", "orders", "other", "orders", "orders"):
        put(store, topic=topic, body=bytes(SMALL_RECORD_BYTES))
    result = store.get_message("orders", 0, 0, 32)
    assert (result.status, result.count, len(result.views)) == (GetStatus.FOUND, 5, 2)
    assert numbers(result) == [0, 1, 2, 3, 4]
    assert result.size_bytes == sum(map(len, result.views))
    assert result.last_position == store.queue_unit("orders", 0, 4)[0]


def test_small_records_that_lie_apart_are_copied_into_one_view(open_store):
    store = open_store(mapped_file_size_commit_log=65536)
    for number in range(20):
        put(store, body=b"%d" % number)
        put(store, topic="other")
    result = store.get_message("orders", 0, 2, 7)
    assert (result.status, result.count, len(result.views)) == (GetStatus.FOUND, 7, 1)
    bodies = [bytes(record.body) for record in decode_records(result.views[0])]
    assert bodies == [b"%d" % number for number in range(2, 9)]
    assert result.size_bytes == len(result.views[0])
    assert result.last_position == store.queue_unit("orders", 0, 8)[0]


def test_views_are_the_log_itself(open_store):
    store = open_store()
    put(store, body=b"before")
    view = store.get_message("orders", 0, 0, 1).views[0]
    store.log.files[0].map[88:94] = b"after!"
    assert bytes(decode_record(view).body) == b"after!"


@pytest.mark.parametrize(
    ("asked", "limits", "count"),
    [
        (5, {}, 5),
        (100, {}, 32),
        (100, {"max_transfer_count_on_message_in_memory": 7}, 7),
        (100, {"max_transfer_bytes_on_message_in_memory": 1000}, 9),
        (100, {"memory_size_bytes": 0}, 8),
        (100, {"memory_size_bytes": 0, "max_transfer_bytes_on_message_in_disk": 350}, 3),
        (0, {}, 1),
    ],
)
def test_a_batch_ends_at_the_first_limit(open_store, asked, limits, count):
    """Records are 104 bytes; the disk limits apply to records further back than the memory budget."""
    store = open_store(mapped_file_size_commit_log=65536, mapped_file_size_consume_queue=20_000, **limits)
    for _ in range(60):
        assert put(store, body=b"1234567").size == 104
    result = store.get_message("orders", 0, 0, asked)
    assert (result.count, result.next_offset, numbers(result)) == (count, count, list(range(count)))


def test_byte_limit_of_the_caller_is_at_least_100_and_the_first_message_always_fits(open_store):
    store = open_store()
    put(store, body=bytes(500))
    for _ in range(5):
        put(store, body=b"")
    assert store.get_message("orders", 0, 0, 32, max_bytes=10).count == 1
    assert store.get_message("orders", 0, 1, 32, max_bytes=194).count == 2
    assert store.get_message("orders", 0, 1, 32, max_bytes=10).count == 1


def test_batch_that_starts_on_disk_and_ends_in_memory_uses_both_limits(open_store):
    store = open_store(mapped_file_size_commit_log=65536, mapped_file_size_consume_queue=20_000)
    fill(store, 60)
    store.config.access_message_in_memory_max_ratio = 100
    store.config.memory_size_bytes = store.log_end - store.queue_unit("orders", 0, 5)[0]
    # Units 0-4 are on disk; the count of 8 binds only units that are themselves on disk.
    assert store.get_message("orders", 0, 0, 32).count == 32
    store.config.memory_size_bytes = store.log_end - store.queue_unit("orders", 0, 9)[0]
    assert store.get_message("orders", 0, 0, 32).count == 8


def test_slave_is_suggested_once_the_reader_is_behind_by_more_than_memory(open_store):
    store = open_store(memory_size_bytes=10 * GIB)
    fill(store, 5)
    assert not store.get_message("orders", 0, 0, 1).suggest_slave
    store.config.memory_size_bytes = 0
    assert store.get_message("orders", 0, 0, 1).suggest_slave


@pytest.mark.parametrize("deleted_files", [0, 1])
@pytest.mark.parametrize("hot_bytes", [0, 1500, GIB])
def test_a_read_without_a_filter_finds_what_a_filter_for_all_messages_finds(
    open_store, hot_bytes, deleted_files
):
    """Several records fill a log file, some of them touch, and queue files hold ten units."""
    store = open_store(max_transfer_bytes_on_message_in_memory=1200)
    for number in range(45):
        put(store, body=bytes(number * 37 % 150))
        if number % 5 == 0:
            put(store, topic="other", body=bytes(number))
    for _ in range(deleted_files):
        store.delete_oldest_log_file()
    store.config.access_message_in_memory_max_ratio = 100
    store.config.memory_size_bytes = hot_bytes
    for offset in range(store.min_offset("orders", 0), 45):
        for count in (0, 1, 2, 7, 32):
            for max_bytes in (None, 300):
                plain, filtered = (
                    store.get_message("orders", 0, offset, count, max_bytes=max_bytes, matches=matches)
                    for matches in (None, lambda code: True)
                )
                for result in (plain, filtered):
                    result.views = [memoryview(b"".join(result.views))]
                assert plain == filtered


def test_one_call_reads_from_one_queue_file(open_store):
    """Queue files hold ten units; travelCqFileNumWhenGetMessage allows more only while nothing was found."""
    store = open_store()
    fill(store, 25)
    assert store.get_message("orders", 0, 0, 32).next_offset == 10
    assert store.get_message("orders", 0, 13, 32).next_offset == 20
    nothing = store.get_message("orders", 0, 0, 32, matches=lambda code: False)
    assert (nothing.status, nothing.next_offset) == (GetStatus.NO_MATCHED_MESSAGE, 10)
    store.config.travel_cq_file_num_when_get_message = 3
    assert store.get_message("orders", 0, 0, 32, matches=lambda code: False).next_offset == 25
    assert store.get_message("orders", 0, 0, 32).next_offset == 10


def test_filter_by_code_skips_messages_and_moves_the_next_offset(open_store):
    store = open_store()
    for number in range(9):
        put(store, TAGS="even" if number % 2 == 0 else "odd")
    wanted = tags_code("odd")
    result = store.get_message("orders", 0, 0, 2, matches=lambda code: code == wanted)
    # Number 4 does not match but may be examined before the limit is noticed, at number 5: none is skipped.
    assert (numbers(result), result.next_offset) == ([1, 3], 4)
    result = store.get_message("orders", 0, 4, 32, matches=lambda code: code == wanted)
    assert (numbers(result), result.next_offset) == ([5, 7], 9)


def test_filter_by_record_sees_whole_records_and_gets_one_view_each(open_store):
    store = open_store()
    fill(store, 6)
    seen = []

    def odd(record):
        seen.append(decode_record(record).size == len(record))
        return int(bytes(decode_record(record).body)) % 2 == 1

    result = store.get_message("orders", 0, 0, 32, matches_record=odd)
    assert (numbers(result), len(result.views), result.next_offset) == ([1, 3, 5], 3, 6)
    assert seen == [True] * 6
    result = store.get_message("orders", 0, 0, 32, matches_record=lambda record: False)
    assert (result.status, result.next_offset) == (GetStatus.NO_MATCHED_MESSAGE, 6)


def test_examined_units_are_limited_by_max_filter_message_size(open_store):
    store = open_store(mapped_file_size_consume_queue=20_000, max_filter_message_size=60)
    fill(store, 30)
    assert store.get_message("orders", 0, 0, 1, matches=lambda code: False).next_offset == 3
    assert store.get_message("orders", 0, 0, 5, matches=lambda code: False).next_offset == 5


def test_records_of_a_deleted_log_file_are_skipped_up_to_the_next_file(open_store):
    """The queue does not know yet: only the log file was deleted."""
    store = open_store(mapped_file_size_consume_queue=20_000)
    fill(store, 60)
    first_kept = next(n for n in range(60) if store.queue_unit("orders", 0, n)[0] >= 4096)
    store.log.files.delete_first()
    result = store.get_message("orders", 0, 0, 32)
    assert (result.status, numbers(result)[0]) == (GetStatus.FOUND, first_kept)
    for _ in range(len(store.log.files) - 1):
        store.log.files.delete_first()
    only_gone = store.get_message("orders", 0, 0, first_kept)
    assert only_gone.status in (GetStatus.MESSAGE_WAS_REMOVING, GetStatus.FOUND)
    assert only_gone.next_offset >= first_kept


def test_reading_a_missing_queue_file_continues_in_the_next_one(open_store):
    store = open_store()
    fill(store, 25)
    store.consume_queue("orders", 0).files.delete(1, 2)
    result = store.get_message("orders", 0, 14, 32)
    assert (result.status, result.next_offset) == (GetStatus.OFFSET_FOUND_NULL, 20)


def test_views_stay_readable_after_their_file_was_deleted(open_store, tmp_path):
    store = open_store()
    fill(store, 60)
    result = store.get_message("orders", 0, 0, 5)
    assert store.delete_oldest_log_file()
    assert not (tmp_path / "store" / "commitlog" / f"{0:020d}").exists()
    assert [bytes(record.body) for view in result.views for record in decode_records(view)] == [
        b"0",
        b"1",
        b"2",
        b"3",
        b"4",
    ]
    assert store.get_message("orders", 0, 0, 5).status is GetStatus.OFFSET_TOO_SMALL
    assert store.read_record(0) is None


def test_record_is_read_only_at_its_exact_position(open_store):
    store = open_store()
    first = put(store)
    assert decode_record(store.read_record(0)).body == b"body"
    assert store.read_record(0, first.size) == store.read_record(0)
    for position in (1, first.size, 4095, 10**12, -1):
        assert store.read_record(position) is None
    assert store.read_record(0, first.size + 1) is None


@pytest.mark.parametrize("damage", [(1 << 50, 100, 0), (0, 0x7FFFFFFF, 0)], ids=["behind the log", "blank"])
def test_damaged_unit_hides_no_other_message(open_store, damage):
    """The official broker goes on at the next log file, as for a file that was deleted."""
    store = open_store()
    for number in range(9):
        put(store, body=b"%d" % number)
    queue = store.consume_queue("orders", 0)
    queue.files[0].map[80:100] = UNIT.pack(*damage)
    assert [record.queue_offset for record in records_of(store)] == [0, 1, 2, 3, 5, 6, 7, 8]
