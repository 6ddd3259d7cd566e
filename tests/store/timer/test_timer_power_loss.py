"""Power fails while messages are enqueued, delivered and saved: none that the log has is lost, or delivered too early.

A run has a seed: messages for some moments, deliveries, saves, passes of the flusher, then a power loss. The store and
the timer are opened on what the disk kept (`losing_disk.py`). Deliveries since the last save may be repeated.
"""

import os
import random
from array import array
from pathlib import Path

import pytest
from pocketmq.protocol.message.properties import TIMER_OUT_MS, decode_properties, encode_properties
from pocketmq.protocol.message.record import decode_record
from pocketmq.protocol.message.topics import TIMER_TOPIC
from pocketmq.store import NewMessage, VirtualClock
from pocketmq.store.timer import timer_wheel
from pocketmq.store.timer.timer_log import NO_POSITION
from pocketmq.store.timer.timer_store import TimerStore

from losing_disk import LosingDisk
from store_batches import leave_as_killed, open_small

RUNS = int(os.environ.get("POCKETMQ_TORTURE_RUNS", "12"))
LOSSES = 3
SLOT_MS = 1000

pytestmark = [
    pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="finds files by descriptor through /proc"),
]


class Life:
    def __init__(self, root: Path, chance: random.Random, disk: LosingDisk) -> None:
        self.root, self.chance, self.disk = root, chance, disk
        self.clock = VirtualClock()
        self.made = 0
        self.open()

    def open(self) -> None:
        sizes = {"mapped_file_size_commit_log": 16384, "mapped_file_size_timer_log": 52 * 10 + 16}
        crc = {"enabled_append_prop_crc": True, "force_verify_prop_crc": True}
        self.store = open_small(self.root, self.clock, **sizes, **crc)
        self.timers = TimerStore(self.store, self.clock.now_ms())
        self.note_late()

    def append(self, topic: str, body: bytes, due_ms: int) -> tuple[int, int, int]:
        """Bodies of one size: the next message can get the place of a lost one."""
        properties = {TIMER_OUT_MS: str(due_ms)}
        result = self.store.append(NewMessage(topic, 0, body, encode_properties(properties)))
        return result.position, result.size, result.queue_offset

    def live(self) -> None:
        for _ in range(self.chance.randint(3, 40)):
            step = self.chance.random()
            if step < 0.55:
                self.made += 1
                due_ms = self.timers.floor(self.clock.now_ms()) + SLOT_MS * self.chance.randint(1, 6)
                self.append(TIMER_TOPIC, b"%06d" % self.made, due_ms)
                self.note_late()
            elif step < 0.7:
                self.timers.write_slots()
                self.timers.flush(self.timers.checkpoint(self.clock.now_ms()))
                self.timers.has_unsaved = False
            elif step < 0.8:
                self.clock.advance(self.chance.choice((600, 11_000)))
                self.store.flush_pass()
            else:
                self.clock.advance(SLOT_MS)
                self.deliver()

    def note_late(self) -> None:
        """As the broker's timer does."""
        queue = self.store.consume_queue(TIMER_TOPIC, 0)
        while queue is not None and self.timers.queue_offset < queue.max_offset:
            position, size, _ = queue.unit(self.timers.queue_offset)
            record = decode_record(self.store.read_record(position, size))
            due_ms = int(decode_properties(bytes(record.properties))[TIMER_OUT_MS])
            now_ms = self.clock.now_ms()
            if self.timers.was_delivered(record.queue_offset, due_ms):
                pass
            elif due_ms < self.timers.read_ms or due_ms < self.timers.floor(now_ms):
                self.append("T", bytes(record.body), due_ms)
            else:
                self.timers.skip_idle(now_ms)
                self.timers.enqueue(due_ms, [(position, size, "T", False)], now_ms)
            self.timers.queue_offset += 1
            self.timers.save_progress(self.timers.delivered)

    def deliver(self) -> None:
        slot_ms = self.timers.floor(self.clock.now_ms())
        while self.timers.read_ms < slot_ms:
            position, positions = self.timers.chain_end(), array("q")
            while position is not None and position != NO_POSITION:
                position = self.timers.collect(position, positions, 100)
            for place in reversed(positions):
                unit = self.timers.log.read(place)
                record = decode_record(self.store.read_record(unit.position, unit.size))
                due_ms = int(decode_properties(bytes(record.properties))[TIMER_OUT_MS])
                assert due_ms == self.timers.read_ms, "the message of another moment"
                self.append("T", bytes(record.body), due_ms)
            self.timers.move_on()

    def lose_power(self) -> None:
        self.timers.close()
        leave_as_killed(self.store)
        self.disk.lose_power()
        if (self.root / "abort").exists():
            (self.root / "abort").write_text("1 another-boot 1")
        self.open()

    def bodies(self, topic: str) -> set[bytes]:
        queue = self.store.consume_queue(topic, 0)
        return {
            bytes(decode_record(self.store.read_record(*queue.unit(offset)[:2])).body)
            for offset in range(queue.max_offset if queue is not None else 0)
        }


@pytest.mark.parametrize("seed", range(RUNS))
def test_every_message_of_the_log_is_delivered_at_its_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(timer_wheel, "SLOTS", 2048)  # the disk reads and tears whole files
    monkeypatch.setattr(timer_wheel, "WHEEL_BYTES", 2048 * timer_wheel.SLOT_BYTES)
    chance = random.Random(seed)
    root = tmp_path / "store"
    life = Life(root, chance, LosingDisk(root, chance, monkeypatch))
    for _ in range(LOSSES):
        life.live()
        life.lose_power()
        life.live()
    life.clock.advance(20_000)
    life.deliver()
    assert life.bodies("T") == life.bodies(TIMER_TOPIC)
    life.timers.close()
    life.store.close()
