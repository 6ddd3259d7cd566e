"""Wheel, timer log and checkpoint: the official layout, and their content after any stop."""

import os
import random
import struct
from array import array
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pocketmq.broker.tables.metric_table import MetricTable
from pocketmq.protocol.message.properties import decode_properties, encode_properties
from pocketmq.protocol.message.record import decode_record
from pocketmq.protocol.message.topics import TIMER_TOPIC
from pocketmq.store import NewMessage
from pocketmq.store.clock import VirtualClock
from pocketmq.store.errors import DiskFullError
from pocketmq.store.files import disk
from pocketmq.store.files.mapped_file import MappedFile
from pocketmq.store.files.mapped_files import MappedFiles
from pocketmq.store.timer.timer_checkpoint import read_timer_checkpoint
from pocketmq.store.timer.timer_log import NO_POSITION, UNIT_BYTES
from pocketmq.store.timer.timer_store import TimerStore
from pocketmq.store.timer.timer_wheel import SLOT_BYTES, SLOTS, WHEEL_BYTES, Slot, TimerWheel

from store_batches import open_small

NOW_MS = 1_700_000_000_000
OFFICIAL_UNITS = (
    (52, 0, 1, 1795246617000, 2000, 312, 316, 84, 0),
    (52, 104, 1, 1795246617000, 2000, 2340, 313, 84, 0),
)
"""As 5.5.0 wrote them for topic T."""
OFFICIAL_SLOT = (200219, (1795246619, 0, 260, 4, 0))


class Timers:
    """A store with one timed message for each timer unit, and its timer."""

    def __init__(self, folder: Path, file_bytes: int = 52 * 20 + 16) -> None:
        self.folder = folder
        self.file_bytes = file_bytes
        self.messages = 0
        self.open()

    def open(self, now_ms: int = NOW_MS) -> None:
        sizes = {"mapped_file_size_commit_log": 1 << 20, "mapped_file_size_timer_log": self.file_bytes}
        self.store = open_small(self.folder, VirtualClock(), **sizes)
        self.timers = TimerStore(self.store, now_ms)

    def enqueue(self, due_ms: int, *, topic: str = "T", deletes: bool = False, now_ms: int = NOW_MS) -> int:
        """Store and enqueue a message; its queue offset."""
        properties = {"TIMER_OUT_MS": str(due_ms)}
        message = NewMessage(TIMER_TOPIC, 0, b"x", encode_properties(properties))
        result = self.store.append(message)
        self.timers.enqueue(due_ms, [(result.position, result.size, topic, deletes)], now_ms)
        self.timers.queue_offset = result.queue_offset + 1
        self.messages += 1
        return result.queue_offset

    def save(self, now_ms: int = NOW_MS) -> None:
        self.timers.write_slots()
        self.timers.flush(self.timers.checkpoint(now_ms))

    def close(self) -> None:
        self.timers.close()
        self.store.close()

    def enqueue_again(self, offset: int) -> None:
        """Note a message of the timer topic that the timer log has lost."""
        queue = self.store.consume_queue(TIMER_TOPIC, 0)
        assert queue is not None
        unit = queue.unit(offset)
        assert unit is not None
        data = self.store.read_record(unit[0], unit[1])
        assert data is not None
        due_ms = int(decode_properties(bytes(decode_record(data).properties))["TIMER_OUT_MS"])
        self.timers.enqueue(due_ms, [(*unit[:2], "T", False)], NOW_MS)

    def pending(self, until_ms: int, *, skips_damaged: bool = False) -> dict[int, list[int]]:
        """The queue offsets of each moment from `read_ms` to `until_ms`, in insertion order; advances the timer."""
        found = {}
        while self.timers.read_ms <= until_ms:
            position = self.timers.chain_end()
            if position is not None:
                found[self.timers.read_ms] = self._offsets(position, skips_damaged=skips_damaged)
            self.timers.move_on()
        return found

    def _offsets(self, position: int, *, skips_damaged: bool) -> list[int]:
        positions = array("q")
        while position != NO_POSITION:
            position = self.timers.collect(position, positions, 7)
        offsets = []
        for place in reversed(positions):
            unit = self.timers.log.read(place)
            if unit is None and skips_damaged:
                continue
            assert unit is not None
            data = self.store.read_record(unit.position, unit.size)
            assert data is not None
            offsets.append(int.from_bytes(data[20:28], "big"))
        return offsets


@pytest.fixture
def timers(tmp_path: Path) -> Timers:
    return Timers(tmp_path)


def test_units_and_slots_have_the_official_layout(tmp_path: Path) -> None:
    """Positions, sizes and times are those of an official 5.5.0 broker that was sent the same four messages."""
    timers = Timers(tmp_path, 1 << 20)
    store, now_ms = timers.timers, 1795246617139
    store.read_ms = 1795246617000
    for place, size, between in ((0, 312, 0), (312, 316, 0), (628, 327, 2), (2340, 313, 0)):
        store.enqueue(1795246619000, [(place, size, "T", False)], now_ms)
        for _ in range(between):
            store.enqueue(1795246620000, [(955, 329, "T", False)], now_ms)
    timers.save()
    log = (tmp_path / "timerlog" / f"{0:020d}").read_bytes()
    assert struct.unpack_from(">iqiqiqiiq", log, 52) == OFFICIAL_UNITS[0]
    assert struct.unpack_from(">iqiqiqiiq", log, 260) == OFFICIAL_UNITS[1]
    wheel = (tmp_path / "timerwheel").read_bytes()
    assert len(wheel) == WHEEL_BYTES == 38_707_200
    number, slot = OFFICIAL_SLOT
    assert struct.unpack_from(">qqqii", wheel, number * SLOT_BYTES) == slot
    timers.close()


def test_checkpoint_counts_its_editions(timers: Timers) -> None:
    path = timers.folder / "config" / "timercheck"
    timers.enqueue(NOW_MS + 5000)
    timers.save()
    assert path.stat().st_size == 4096
    first = read_timer_checkpoint(path)
    assert first is not None
    assert (first.last_timer_log_flush_position, first.last_timer_queue_offset) == (UNIT_BYTES, 1)
    timers.save()
    assert read_timer_checkpoint(path) == first, "nothing has moved"
    timers.enqueue(NOW_MS + 5000)
    timers.save(NOW_MS + 1)
    second = read_timer_checkpoint(path)
    assert second is not None
    assert (second.version_counter, second.version_timestamp) == (first.version_counter + 1, NOW_MS + 1)
    timers.close()


def test_torn_unit_at_the_end_is_cut(timers: Timers) -> None:
    timers.enqueue(NOW_MS + 1000)
    timers.save()
    timers.enqueue(NOW_MS + 1000)
    timers.enqueue(NOW_MS + 2000)
    file = timers.timers.log.files[0]
    file.map[2 * UNIT_BYTES : 2 * UNIT_BYTES + 4] = bytes(4)
    timers.close()
    timers.open()
    assert timers.timers.log.end == 2 * UNIT_BYTES
    assert timers.pending(NOW_MS + 5000) == {NOW_MS + 1000: [0, 1]}
    timers.close()


def test_units_of_messages_that_a_power_loss_took_are_cut(timers: Timers) -> None:
    """The next message gets the place of the lost one; it must not be delivered at the lost one's time."""
    timers.enqueue(NOW_MS + 1000)
    timers.save()
    timers.store.close()
    before = {
        path: path.read_bytes()
        for path in timers.folder.rglob("*")
        if path.is_file() and not path.name.startswith("timer") and "timerlog" not in path.parts
    }
    timers.timers.close()
    timers.open()
    timers.enqueue(NOW_MS + 2000)
    timers.enqueue(NOW_MS + 3000)
    timers.timers.write_slots()
    timers.timers.close()
    timers.store.close()
    for path, content in before.items():
        path.write_bytes(content)
    timers.open()
    assert timers.timers.log.end == UNIT_BYTES
    assert timers.timers.queue_offset == 1
    offset = timers.enqueue(NOW_MS + 9000)
    assert timers.pending(NOW_MS + 20_000) == {NOW_MS + 1000: [0], NOW_MS + 9000: [offset]}
    timers.close()


def test_checkpoint_is_written_once_log_and_units_are_forced(
    timers: Timers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log first: a power loss must not leave units without their messages, or take messages that the checkpoint
    says were delivered."""
    forced, sync = [], disk.sync_descriptor

    def noted_sync(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        forced.append(path.parent.name if path.name.isdecimal() else path.name)
        sync(descriptor)

    timers.enqueue(NOW_MS + 1000)
    monkeypatch.setattr(disk, "sync_descriptor", noted_sync)
    timers.save()
    assert forced == ["commitlog", "timerlog", "timerwheel", "timercheck"]
    timers.close()


@pytest.mark.parametrize("wheel", ["kept", "lost"])
def test_damaged_unit_costs_no_message_behind_it(timers: Timers, wheel: str) -> None:
    """The start cuts the timer log there if it reads it; what the log then lacks is enqueued again."""
    enqueued = {NOW_MS + 1000 * number: [timers.enqueue(NOW_MS + 1000 * number)] for number in range(1, 11)}
    timers.save()
    timers.timers.log.files[0].map[4 * UNIT_BYTES] ^= 1
    timers.close()
    if wheel == "lost":
        (timers.folder / "timerwheel").unlink()
        timers.open()
        assert timers.timers.queue_offset == 4
        for offset in range(4, 10):
            timers.enqueue_again(offset)
    else:
        timers.open()
        del enqueued[NOW_MS + 5000]  # nobody looked at it
    found = timers.pending(NOW_MS + 20_000, skips_damaged=True)
    assert {due_ms: offsets for due_ms, offsets in found.items() if offsets} == enqueued
    timers.close()


@pytest.mark.parametrize("moment", [1 << 62, NOW_MS // 1000 + 7])
def test_damaged_slot_has_the_wheel_made_again(timers: Timers, moment: int) -> None:
    enqueued = {NOW_MS + 1000 * number: [timers.enqueue(NOW_MS + 1000 * number)] for number in range(1, 4)}
    timers.save()
    timers.close()
    number = (NOW_MS // 1000 + 2) % SLOTS
    with (timers.folder / "timerwheel").open("r+b") as file:
        file.seek(number * SLOT_BYTES)
        file.write(moment.to_bytes(8, "big"))
    timers.open()
    assert timers.timers.last_ms == NOW_MS + 3000
    assert timers.pending(NOW_MS + 20_000) == enqueued
    timers.close()


def test_each_slot_is_read_once(timers: Timers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pocketmq.store.timer.timer_store.MAX_CACHED_SLOTS", 3)
    read, asked = TimerWheel.slot, []

    def slot(wheel: TimerWheel, time_ms: int) -> Slot | None:
        asked.append(time_ms)
        return read(wheel, time_ms)

    monkeypatch.setattr(TimerWheel, "slot", slot)
    moments = [NOW_MS + 1000, NOW_MS + 2000, NOW_MS + 3000]
    for due_ms in (*moments, *moments):
        timers.enqueue(due_ms)
    assert asked == moments
    timers.enqueue(NOW_MS + 4000)  # more than are cached: all are read again
    timers.enqueue(moments[0])
    assert asked == [*moments, NOW_MS + 4000, moments[0]]
    assert timers.pending(moments[-1]) == {
        moments[0]: [0, 3, 7],
        moments[1]: [1, 4],
        moments[2]: [2, 5],
    }
    timers.close()


def test_chain_with_a_forward_pointer_ends_there(timers: Timers) -> None:
    for _ in range(3):
        timers.enqueue(NOW_MS + 1000)
    file = timers.timers.log.files[0]
    struct.pack_into(">q", file.map, UNIT_BYTES + 4, 2 * UNIT_BYTES)
    assert timers.pending(NOW_MS + 1000) == {NOW_MS + 1000: [1, 2]}
    timers.close()


def test_timer_files_are_deleted_once_their_messages_are(timers: Timers) -> None:
    for number in range(50):
        timers.enqueue(NOW_MS + 1000 * number)
    files = timers.timers.log.files
    assert len(files) == 3
    last = timers.timers.log.read(files[0].base + 19 * UNIT_BYTES)
    assert last is not None
    for log_start, left in ((last.position, 3), (last.position + 1, 2), (1 << 40, 1)):
        timers.timers.log.delete_before(log_start)
        assert len(files) == left, "the newest stays"
    timers.close()


def test_a_unit_is_taken_back_if_the_disk_has_no_room_for_its_slot(
    timers: Timers, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(15):
        timers.enqueue(NOW_MS + 2000)
    end = timers.timers.log.end

    def full(wheel: TimerWheel, slots: Iterable[Slot]) -> None:
        raise DiskFullError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(TimerWheel, "put_all", full)
        with pytest.raises(DiskFullError):
            timers.timers.enqueue(NOW_MS + 1000, [(0, 300, "T", False)], NOW_MS)
    assert (timers.timers.log.end, timers.timers.waiting) == (end, 15)

    def refuse(files: MappedFiles, base: int, room_bytes: int) -> MappedFile:
        raise DiskFullError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(MappedFiles, "add_file", refuse)
        with pytest.raises(DiskFullError):
            timers.timers.enqueue(NOW_MS + 1000, [(0, 300, "T", False)] * 9, NOW_MS)
    assert (timers.timers.log.end, timers.timers.waiting) == (end, 15)
    timers.enqueue(NOW_MS + 1000)
    assert timers.pending(NOW_MS + 2000) == {NOW_MS + 1000: [15], NOW_MS + 2000: list(range(15))}
    timers.close()


def test_with_snapshots_of_an_official_wheel_ours_is_rebuilt(timers: Timers) -> None:
    timers.enqueue(NOW_MS + 1000)
    timers.save()
    timers.close()
    (timers.folder / "timerwheel").write_bytes(bytes(WHEEL_BYTES))
    (timers.folder / "timerwheel.52").write_bytes(bytes(WHEEL_BYTES))
    timers.open()
    assert timers.pending(NOW_MS + 2000) == {NOW_MS + 1000: [0]}
    timers.close()


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1 << 30))
def test_every_message_is_in_the_chain_of_its_moment_after_any_stop(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """For any last save, and also if the wheel, the checkpoint or both were lost."""
    chance = random.Random(seed)
    timers = Timers(tmp_path_factory.mktemp("timers"))
    enqueued: dict[int, list[int]] = {}
    for _ in range(chance.randrange(1, 5)):
        for _ in range(chance.randrange(30)):
            due_ms = NOW_MS + 1000 * chance.randrange(12)
            enqueued.setdefault(due_ms, []).append(timers.enqueue(due_ms))
            if chance.random() < 0.1:
                timers.save()
        if chance.random() < 0.5:
            timers.save()
        queue_offset = timers.timers.queue_offset
        timers.close()
        if chance.random() < 0.3:
            (timers.folder / "timerwheel").unlink()
        if chance.random() < 0.3:
            (timers.folder / "config" / "timercheck").unlink(missing_ok=True)
        timers.open()
        assert timers.timers.queue_offset == queue_offset
        assert timers.timers.waiting == sum(map(len, enqueued.values()))
    assert timers.pending(NOW_MS + 20_000) == enqueued
    timers.close()


def test_counts_by_topic_are_one_line_of_json(tmp_path: Path) -> None:
    """As 5.5.0 writes it; both brokers can read it."""
    clock = VirtualClock()
    table = MetricTable(tmp_path, clock.now_ms, "timingCount")
    table.add("orders", 2)
    table.add("orders", 1)
    table.persist()
    text = (tmp_path / "timermetrics").read_text()
    assert text == (
        '{"dataVersion":{"counter":2,"stateVersion":0,"timestamp":1700000000000},'
        '"timingCount":{"orders":{"count":3,"timeStamp":1700000000000}}}'
    )
    again = MetricTable(tmp_path, clock.now_ms, "timingCount")
    assert again.load()
    assert (again.count("orders"), again.count("others")) == (3, 0)
    again.remove("orders")
    assert again.count("orders") == 0
