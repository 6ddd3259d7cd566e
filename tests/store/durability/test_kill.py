"""A writer killed at random moments: every message it acknowledged is stored, in order, and found by key.

A kill does not affect the system's page cache, so both flush modes promise everything (for power loss see
`test_power_loss.py`). All kills share one directory, like a server that keeps crashing. Half of the runs erase which
process wrote `abort`, so that recovery trusts only flushed data. POCKETMQ_TORTURE_RUNS sets a larger number of kills
than the default suite has time for.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from pocketmq.broker.tables.offset_table import OffsetTable
from pocketmq.protocol.message.record import decode_records
from pocketmq.store import MessageStore, WallClock

from kill_writer import GROUP, QUEUES, TOPIC, config_of
from store_batches import records_of

KILLS = int(os.environ.get("POCKETMQ_TORTURE_RUNS", "24")) // 2
KILLS_OF_ONE_STORE = 8
LONGEST_LIFE_SECONDS = 0.08

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="forks its writers"),
    pytest.mark.timeout(60 + 2 * KILLS),
    *([pytest.mark.slow] if KILLS > 12 else []),
]


class Writers:
    """`kill_writer.py`, and what it prints."""

    def __init__(self) -> None:
        program = Path(__file__).parent.parent.parent / "kill_writer.py"
        self._process = subprocess.Popen(
            [sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._say: IO[str] = self._process.stdin
        self._hear: IO[str] = self._process.stdout

    def run_and_kill(self, root: Path, mode: str, seed: str, seconds: float) -> list[list[str]]:
        """What a writer printed, as words, until it was killed that long after its start."""
        print(root, mode, seed, file=self._say, flush=True)
        lines = self._words_until("started")
        pid = int(lines[-1][1])
        time.sleep(seconds)  # the moment of the kill is random
        os.kill(pid, signal.SIGKILL)
        return [*lines[:-1], *self._words_until("ended")[:-1]]

    def _words_until(self, word: str) -> list[list[str]]:
        lines: list[list[str]] = []
        while not lines or lines[-1][0] != word:
            line = self._hear.readline()
            assert line, "the writers' process has ended"
            lines.append(line.split())
        return lines

    def end(self) -> None:
        self._say.close()
        self._process.wait(30)
        self._hear.close()


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    writers = Writers()
    yield writers
    writers.end()


@pytest.mark.parametrize("mode", ["SYNC_FLUSH", "ASYNC_FLUSH"])
def test_killed_writer_loses_nothing_it_acknowledged(writers: Writers, tmp_path: Path, mode: str) -> None:
    chance = random.Random(mode)
    acknowledged: dict[tuple[int, int], str] = {}
    for kill in range(KILLS):
        root = tmp_path / f"store-{kill // KILLS_OF_ONE_STORE}"
        if kill % KILLS_OF_ONE_STORE == 0:
            acknowledged = {}
        said = writers.run_and_kill(root, mode, f"{mode}{kill}", chance.random() * LONGEST_LIFE_SECONDS)
        for _, queue_id, offset, key in (words for words in said if words[0] == "a"):
            place = int(queue_id), int(offset)
            assert place not in acknowledged, f"offset {place} was given twice"
            acknowledged[place] = key
        if chance.random() < 0.5 and (root / "abort").exists():
            (root / "abort").write_text("1")
        check_messages(root, mode, acknowledged)
        check_consumer_offset(root, said)


def check_messages(root: Path, mode: str, acknowledged: dict[tuple[int, int], str]) -> None:
    """Opens the store, which recovers it; every other time leaves it as a kill would."""
    store = MessageStore(config_of(str(root), mode), WallClock(), flush_in_background=False)
    store.open()
    held: dict[tuple[int, int], str] = {}
    for queue_id in range(QUEUES):
        found = records_of(store, TOPIC, queue_id)
        numbers = [record.queue_offset for record in found]
        assert numbers == list(range(store.max_offset(TOPIC, queue_id))), "one is missing or doubled"
        held |= {(queue_id, one.queue_offset): bytes(one.body).rstrip(b".").decode() for one in found}
    lost = {place: key for place, key in acknowledged.items() if held.get(place) != key}
    assert not lost
    for key in [*acknowledged.values()][-20:]:
        views = store.query(TOPIC, key, 64, 0, 1 << 62).views
        found = [bytes(record.body) for view in views for record in decode_records(view)]
        assert [body for body in found if body.rstrip(b".").decode() == key], f"the index does not know {key}"
    store.close()


def check_consumer_offset(root: Path, said: list[list[str]]) -> None:
    committed = [int(words[1]) for words in said if words[0] == "o"]
    saved = [int(words[1]) for words in said if words[0] == "p"]
    if not saved:
        return
    offsets = OffsetTable(root / "config", WallClock().now_ms)
    offsets.load()
    assert saved[-1] <= offsets.query(TOPIC, GROUP, 0) <= committed[-1]
