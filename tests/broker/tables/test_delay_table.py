"""Delay levels and their delivery offsets."""

from pathlib import Path

import pytest
from pocketmq.broker.tables.delay_table import DelayTable
from pocketmq.protocol.errors import BodyError
from pocketmq.store.clock import VirtualClock
from pocketmq.store.config import parse_delay_levels
from pocketmq.store.errors import StoreError


@pytest.fixture
def delays(tmp_path: Path) -> DelayTable:
    return DelayTable(tmp_path / "config", VirtualClock().now_ms)


def test_default_levels(delays: DelayTable):
    assert len(delays.levels) == 18
    assert [delays.levels[level] // 1000 for level in (1, 2, 4, 5, 14, 15, 16, 17, 18)] == [
        *(1, 5, 30, 60, 600, 1200, 1800, 3600, 7200)
    ]


def test_units():
    assert parse_delay_levels("2s 3m 1h 1d") == {1: 2_000, 2: 180_000, 3: 3_600_000, 4: 86_400_000}


@pytest.mark.parametrize("text", ["", " ", "1x", "s", "1s -5s", "1s 5"])
def test_unreadable_levels_are_refused(text: str):
    with pytest.raises(StoreError, match="messageDelayLevel"):
        parse_delay_levels(text)


def test_deliver_time(delays: DelayTable):
    assert delays.deliver_timestamp(2, 1000) == 6000
    assert delays.deliver_timestamp(99, 1000) == 2000


def test_offsets_start_at_zero_and_are_loaded_from_the_file(delays: DelayTable):
    assert delays.offset(3) == 0
    assert delays.persist() is False
    delays.update(3, 7)
    assert delays.persist() is True
    delays.update(3, 7)
    assert delays.persist() is False
    again = DelayTable(delays.file.path.parent, VirtualClock().now_ms)
    again.load()
    assert again.offset(3) == 7
    assert '"3":7' in delays.file.path.read_text()


def test_every_200_updates_make_a_data_version(delays: DelayTable):
    for offset in range(400):
        delays.update(1, offset)
    assert delays.data_version.counter == 2


@pytest.mark.parametrize(("stored", "corrected"), [(1, 5), (7, 7), (20, 9)])
def test_an_offset_outside_its_queue_is_corrected(delays: DelayTable, stored: int, corrected: int):
    delays.update(1, stored)
    delays.correct(1, 5, 9)
    delays.correct(2, 5, 9)
    assert delays.offset(1) == corrected
    assert delays.offset(2) == 0


@pytest.mark.parametrize(
    "text", [b'{"offsetTable":{1:40,3:7}}', b'{"dataVersion":{"counter":5},"offsetTable":{"1":40,"3":7}}']
)
def test_a_slave_reads_its_masters_answer_of_either_line(delays: DelayTable, text: bytes):
    delays.replace_all(text)
    assert (delays.offset(1), delays.offset(3)) == (40, 7)
    assert delays.persist() is True


def test_a_broken_answer_of_a_master_changes_nothing(delays: DelayTable):
    with pytest.raises(BodyError):
        delays.replace_all(b"{")
    assert not delays.dirty
