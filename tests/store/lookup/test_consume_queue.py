"""Units, pre-blank units, file names, min offsets of both official lines."""

from pathlib import Path

import pytest
from pocketmq.store.durability.queue_repair import restore_end
from pocketmq.store.files.mapped_files import MappedFiles
from pocketmq.store.lookup.consume_queue import ConsumeQueue
from pocketmq.store.lookup.queue_unit import UNIT


@pytest.fixture
def make_queue(tmp_path: Path):
    def make(units_in_a_file: int = 10) -> ConsumeQueue:
        return ConsumeQueue("orders", 0, MappedFiles(tmp_path / "orders" / "0", units_in_a_file * 20, 400))

    return make


def names(queue: ConsumeQueue) -> list[str]:
    return [file.path.name for file in queue.files]


def fill(queue: ConsumeQueue, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        queue.append(number * 100, 100, 0, number)


def test_second_file_of_default_size_has_the_official_name(make_queue):
    queue = make_queue(300_000)
    queue.append(0, 100, 0, 299_999)
    queue.append(100, 100, 0, 300_000)
    assert names(queue) == ["00000000000000000000", "00000000000006000000"]
    assert (queue.min_offset, queue.max_offset) == (299_999, 300_001)


def test_units_before_the_first_are_pre_blank(make_queue):
    queue = make_queue()
    queue.append(5000, 100, -7, 13)
    assert names(queue) == [f"{200:020d}"]
    assert queue.units_from(10)[:60] == UNIT.pack(0, 0x7FFFFFFF, 0) * 3
    assert queue.unit(13) == (5000, 100, -7)
    assert (queue.min_offset, queue.max_offset) == (13, 14)


def test_a_unit_is_added_once_however_often_it_is_dispatched(make_queue):
    queue = make_queue()
    fill(queue, 12)
    assert not queue.append(300, 100, 0, 3)
    assert not queue.append(1100, 100, 0, 11)
    assert queue.max_offset == 12


def test_unit_ahead_of_the_queue_gets_the_next_place(make_queue, caplog):
    """The official broker logs an error and appends it too."""
    queue = make_queue()
    fill(queue, 2)
    assert queue.append(900, 100, 0, 5)
    assert queue.unit(2) == (900, 100, 0)
    assert "expects unit 2" in caplog.text


def test_offset_zero_after_others_restarts_the_queue(make_queue):
    """Records of a deleted topic that a crash recovers must not displace the queue created after it."""
    queue = make_queue()
    fill(queue, 12)
    assert queue.append(5000, 100, 0, 0)
    assert (queue.max_offset, queue.unit(0)) == (1, (5000, 100, 0))
    assert names(queue) == [f"{0:020d}"]


def test_recovery_ends_at_the_first_impossible_unit(make_queue):
    queue = make_queue()
    fill(queue, 25)
    queue.files[2].map[40:60] = UNIT.pack(2200, 0, 0)
    again = make_queue()
    again.files.load()
    restore_end(again, 0)
    assert (again.max_offset, again.records_end) == (22, 2200)
    assert bytes(again.files[2].view[40:]) == bytes(160), "units after the end must not become valid again"
    assert again.append(2200, 100, 0, 22)


def test_after_recovery_of_full_files_a_new_file_follows(make_queue):
    queue = make_queue()
    fill(queue, 40)
    again = make_queue()
    again.files.load()
    restore_end(again, 0)
    assert (again.max_offset, again.records_end) == (40, 4000)
    again.append(4000, 100, 0, 40)
    assert names(again)[-1] == f"{800:020d}"


@pytest.mark.parametrize(
    ("cut", "left"), [(2500, 25), (2401, 25), (2400, 24), (2000, 20), (1999, 20), (900, 9), (0, 0)]
)
def test_units_of_records_after_the_cut_are_dropped(make_queue, cut, left):
    queue = make_queue()
    fill(queue, 25)
    queue.truncate(cut)
    assert queue.max_offset == left
    assert queue.records_end == (left * 100 if left else -1)
    fill(queue, 25 - left, left)
    assert [queue.unit(number) for number in range(25)] == [(number * 100, 100, 0) for number in range(25)]


@pytest.mark.parametrize(
    ("log_min", "minimum_4", "minimum_5"),
    [(0, 0, 0), (100, 1, 1), (101, 2, 2), (2400, 24, 24), (2401, 20, 25), (9999, 20, 25)],
)
def test_min_offset_follows_the_log(make_queue, log_min, minimum_4, minimum_5):
    """4.x leaves a queue without valid units at its first file's start; 5.x makes it empty."""
    for emulate, minimum in ((4, minimum_4), (5, minimum_5)):
        queue = make_queue()
        fill(queue, 25)
        queue.delete_files_before(log_min)
        queue.min_offset = queue.files[0].base // 20
        queue.correct_min_offset(log_min, emulate)
        assert queue.min_offset == minimum
        queue.destroy()


def test_last_file_is_never_deleted(make_queue):
    queue = make_queue()
    fill(queue, 30)
    assert len(names(queue)) == 3
    queue.delete_files_before(10**9)
    assert names(queue) == [f"{400:020d}"]
    assert queue.unit(0) is None
