"""Power fails at random moments; flushed data survives, and log, queues and index agree about the rest.

Each run has a seed: appends, batches, passes of the flusher, deletions, kills, failures of the disk, then a power loss,
and the store is opened on what the disk kept (`losing_disk.py`); all of it several times. POCKETMQ_TORTURE_RUNS sets a
larger number of runs than the default suite has time for.
"""

import os
import random
from pathlib import Path

import pytest
from pocketmq.protocol.message.properties import decode_properties, encode_properties
from pocketmq.protocol.message.record import decode_records
from pocketmq.store import MessageStore, NewMessage, PutStatus, VirtualClock
from pocketmq.store.at_rest.check import check_store
from pocketmq.store.errors import DiskFailedError
from pocketmq.store.put_values import Placed

from losing_disk import LosingDisk
from store_batches import append_batch, leave_as_killed, open_small, queue_offsets, records_of

LIVES = int(os.environ.get("POCKETMQ_TORTURE_RUNS", "24"))
LOSSES_IN_A_LIFE = 4
QUEUES = 3
OTHER_BOOT = "1 another-boot 1"

pytestmark = [
    pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="finds files by descriptor through /proc"),
]


class Life:
    """The store, and every message it ever stored: (position, size, queue, queue offset, body, key)."""

    def __init__(self, root: Path, mode: str, chance: random.Random, disk: LosingDisk) -> None:
        self.root, self.mode, self.chance, self.disk = root, mode, chance, disk
        self.clock = VirtualClock()
        self.records: list[tuple[int, int, int, int, bytes, str]] = []
        self.made = 0
        self.store = self.open()

    def open(self) -> MessageStore:
        sizes = {"mapped_file_size_commit_log": 16384, "mapped_file_size_consume_queue": 400}
        sizes |= {"max_hash_slot_num": 16, "max_index_num": 40}
        # bodyCRC alone does not detect a sector lost from the properties.
        crc = {"enabled_append_prop_crc": True, "force_verify_prop_crc": True}
        return open_small(self.root, self.clock, flush_disk_type=self.mode, **sizes, **crc)

    def live(self) -> None:
        """5 to 60 random steps."""
        for _ in range(self.chance.randint(5, 60)):
            step = self.chance.random()
            if step < 0.6:
                self.append([self.message()])
            elif step < 0.75:
                self.append([self.message(1, 900) for _ in range(self.chance.randint(1, 6))])
            elif step < 0.94:
                self.flush()
            elif step < 0.97:
                self.kill()
            else:
                self.delete()

    def message(self, queue_id: int | None = None, most_bytes: int = 5000) -> NewMessage:
        self.made += 1
        properties = {"KEYS": f"key{self.made}", "TAGS": f"t{self.made % 3}"}
        body = (b"%d:" % self.made).ljust(min(self.chance.choice((10, 300, 900, 5000)), most_bytes), b".")
        place = self.chance.randrange(QUEUES) if queue_id is None else queue_id
        return NewMessage("orders", place, body, encode_properties(properties))

    def append(self, messages: list[NewMessage]) -> None:
        """As a batch, if they are several."""
        placed = append_batch(self.store, messages) if len(messages) > 1 else self.append_one(messages[0])
        assert placed.refusal is None
        places = zip(placed.positions, placed.sizes, queue_offsets(placed), strict=True)
        for message, (position, size, offset) in zip(messages, places, strict=True):
            key = decode_properties(message.properties)["KEYS"]
            self.records.append((position, size, message.queue_id, offset, bytes(message.body), key))
        self.clock.advance(self.chance.randint(0, 20))

    def append_one(self, message: NewMessage) -> Placed:
        return self.store.append_all([self.store.pack_message(message)])

    def flush(self) -> None:
        self.clock.advance(self.chance.choice((1, 600, 1_100, 10_000, 61_000)))
        self.store.flush_pass()
        self.store.dispatch_flushed()

    def delete(self) -> None:
        """Deleted files are days old: the remaining ones were flushed long ago."""
        files = self.store.log.files
        if len(files) < 2 or self.store.flushed_position <= files[1].base:
            return
        self.store.delete_oldest_log_file()
        self.records = [record for record in self.records if record[0] >= self.store.log_start]

    def kill(self) -> None:
        """The process dies and another one goes on: what was written, but not forced, is in the page cache."""
        self.store._flusher = None
        self.store._lock.release()
        self.store = self.open()

    def lose_power(self) -> None:
        flushed = self.store.flushed_position
        if self.chance.random() < 0.3:
            self.refuse()
        leave_as_killed(self.store)
        self.disk.broken = False
        self.disk.lose_power()
        if (self.root / "abort").exists():
            (self.root / "abort").write_text(OTHER_BOOT)
        self.store = self.open()
        assert self.store.log_end >= flushed, "flushed messages survive"
        end = self.store.log_end
        self.records = [record for record in self.records if record[0] + record[1] <= end]
        self.clock.advance(1000)

    def refuse(self) -> None:
        """The disk fails before the power does: from then on the store confirms no message."""
        self.append([self.message()])
        self.disk.broken = True
        self.clock.advance(61_000)
        with pytest.raises(DiskFailedError):
            self.store.flush_pass()
        self.disk.broken = False
        assert self.store.append(self.message()).status is PutStatus.SERVICE_NOT_AVAILABLE
        with pytest.raises(DiskFailedError):
            self.store.flush_pass()

    def check(self) -> None:
        self.store.dispatch_flushed()
        visible = self.store.flushed_position if self.mode == "SYNC_FLUSH" else self.store.log_end
        shown = [record for record in self.records if record[0] + record[1] <= visible]
        for queue_id in range(QUEUES):
            here = [record for record in shown if record[2] == queue_id]
            numbers, bodies = self.read(queue_id)
            first = len(numbers) - len(here)
            assert first >= 0, f"queue {queue_id} lost {-first} messages"
            assert numbers[first:] == [record[3] for record in here]
            assert bodies[first:] == [record[4] for record in here]
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers)) if numbers else ())
        for position, _, _, _, body, key in shown:
            found = self.store.query("orders", key, 64, 0, 1 << 62).views
            assert body in [bytes(one.body) for view in found for one in decode_records(view)], (
                key,
                position,
            )

    def read(self, queue_id: int) -> tuple[list[int], list[bytes]]:
        found = records_of(self.store, queue_id=queue_id)
        return [record.queue_offset for record in found], [bytes(record.body) for record in found]


@pytest.mark.parametrize("mode", ["SYNC_FLUSH", "ASYNC_FLUSH"])
@pytest.mark.parametrize("seed", range(LIVES // 2))
def test_flushed_data_survives_a_power_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, seed: int
) -> None:
    chance = random.Random(f"{mode}{seed}")
    root = tmp_path / "store"
    life = Life(root, mode, chance, LosingDisk(root, chance, monkeypatch))
    for _ in range(LOSSES_IN_A_LIFE):
        life.live()
        life.lose_power()
        life.check()
    life.store.close()
    assert not check_store(root).damaged


def test_what_a_killed_process_wrote_is_forced_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of files and folders included: the one that made them may have died before it forced them."""
    root = tmp_path / "store"
    disk = LosingDisk(root, random.Random(1), monkeypatch)
    life = Life(root, "ASYNC_FLUSH", random.Random(1), disk)
    life.append([life.message(0)])
    life.kill()
    life.clock.advance(61_000)
    life.store.flush_pass()
    data = [path for part in ("commitlog", "consumequeue", "index") for path in (root / part).rglob("*")]
    assert [path.relative_to(root) for path in data if path not in disk.entries] == []
