"""Whether consume queues and log match, both ways: every record has its unit, and every unit its record.

    record of Orders 0, offset 7, at 4100, 312 bytes     unit 7 of Orders 0 must be (4100, 312)
    unit 7 of Orders 0: (4100, 312)                      at 4100 must be a record of Orders 0, offset 7, 312 bytes

A record is compared with the unit at its own offset, so nothing is sorted or joined. Only records that the broker had
dispatched when the scan was planned are compared, so a store that is being written has no false findings. Units of
deleted log files and units of other topics that point at the same record (as multi-dispatch makes them) are not
findings. Records of deleted topics, also of one that was created again under its name, are counted on their own. A
queue that is missing may be one that such a topic has not used since, or lost: its records before the first unit of the
topic have a status of their own, and `jobs/answers/audit.py` decides.
"""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from ...errors import OptionError
from ..records.records import records_at
from ..records.scans import Flags
from ..records.slices import Ints
from .consume_queues import UNIT, UNIT_ROWS, QueueSplit, UnitFiles, are_records, unit_batches
from .log_files import LogFile, LogWindow, files_at, log_files, log_window
from .run_statuses import DELETED_TOPIC, NO_QUEUE, NO_RECORD, NO_UNIT, OTHER_RECORD, OTHER_SIZE
from .runs import RUN, Runs, RunTable
from .store_topics import configured_topics

_Units = npt.NDArray[Any]
_FINDINGS: Final = (NO_RECORD, OTHER_RECORD, OTHER_SIZE)
_NO_RECORD, _OTHER_RECORD, _OTHER_SIZE, _NOTHING = range(4)
"""What was found of a unit, as a number."""


class QueueFiles:
    """The units of all queues of a store, read by offset."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._files: dict[tuple[str, int], UnitFiles] = {}
        self._firsts: dict[tuple[str, int], tuple[int, int] | None] = {}
        self._begins: dict[str, int] = {}
        self.has_topic = functools.cache(self._has_topic)

    def _has_topic(self, topic: str) -> bool:
        """Whether the topic has a folder of queues. A damaged record may hold any text as its topic."""
        is_plain_name = topic not in ("", ".", "..") and "/" not in topic and "\0" not in topic
        return is_plain_name and (self._root / topic).is_dir()

    def units(self, topic: str, queue_id: int, lo: int, hi: int) -> _Units:
        """Units [lo, hi) of a queue; those that no file has are zeros."""
        found = np.zeros(hi - lo, dtype=UNIT)
        for first, piece in self._files_of(topic, queue_id).pieces(lo, hi):
            found[first - lo : first - lo + len(piece)] = piece
        return found

    def has_unit(self, topic: str, queue_id: int, offset: int, position: int) -> bool:
        """Whether the queue has the record of this offset, at this position of the log."""
        if offset < 0 or not self.has_topic(topic):
            return False
        (unit,) = self.units(topic, queue_id, offset, offset + 1)
        return bool(unit["size"] > 0 and unit["position"] == position)

    def first_unit(self, topic: str, queue_id: int) -> tuple[int, int] | None:
        """(offset, log position) of the queue's first unit; None if the queue has none."""
        queue = (topic, queue_id)
        if queue not in self._firsts:
            self._firsts[queue] = self._files_of(topic, queue_id).first_record()
        return self._firsts[queue]

    def begin(self, topic: str) -> int:
        """The log position of the first unit of a topic; 0 if it has none."""
        if topic not in self._begins:
            ids = [path.name for path in (self._root / topic).iterdir() if path.name.isdigit()]
            firsts = [self.first_unit(topic, int(name)) for name in ids]
            self._begins[topic] = min((first[1] for first in firsts if first is not None), default=0)
        return self._begins[topic]

    def _files_of(self, topic: str, queue_id: int) -> UnitFiles:
        queue = (topic, queue_id)
        if queue not in self._files:
            self._files[queue] = UnitFiles(str(self._root / topic / str(queue_id)))
        return self._files[queue]


class RecordCheck:
    """Compares records with their units. What does not match becomes runs with a status."""

    def __init__(self, root: str, table: RunTable, known_end: int) -> None:
        self._files = QueueFiles(Path(root) / "consumequeue")
        self._topics = configured_topics(root)
        # Without the folder, queues are lost, not topics deleted.
        self._has_queues = (Path(root) / "consumequeue").is_dir()
        self._table = table
        self._known_end = known_end

    def check(self, runs: Runs) -> Runs:
        """`runs` has one run for each record; those of one queue are together. Returns those of topics that exist."""
        if not len(runs):
            return runs
        edges = np.flatnonzero(np.diff(runs["key"], prepend=runs["key"][0] - 1)).tolist()
        kept = [
            self._check_queue(*self._table.queue(int(runs["key"][begin])), runs[begin:end])
            for begin, end in zip(edges, [*edges[1:], len(runs)], strict=True)
        ]
        return np.concatenate(kept) if sum(map(len, kept)) < len(runs) else runs

    def _check_queue(self, topic: str, queue_id: int, runs: Runs) -> Runs:
        """The runs without those of deleted topics."""
        positions = runs["firstPosition"]
        without = np.zeros(len(runs), dtype=np.bool_)
        known = np.flatnonzero(positions < self._known_end)
        if len(known):
            without[known] = self._are_without_unit(topic, queue_id, runs[known])
        if not without.any():
            return runs
        status = self._statuses(topic, queue_id, runs)
        is_deleted: Flags = without & (status == DELETED_TOPIC)
        for each in (DELETED_TOPIC, NO_QUEUE, NO_UNIT):
            mask = without & (status == each)
            if mask.any():
                self._report(topic, queue_id, runs[mask], each)
        return runs[~is_deleted]

    def _statuses(self, topic: str, queue_id: int, runs: Runs) -> npt.NDArray[Any]:
        """What a record of each run is, if it has no unit.

        A topic that the broker does not know is deleted. One that was created again began its queues at offset 0 again:
        a record before the first unit of its queue, with an offset that the queue has had since, is of the first life.
        """
        if not self._files.has_topic(topic):
            is_known = self._topics is None or topic in self._topics or not self._has_queues
            return np.full(len(runs), NO_UNIT if is_known else DELETED_TOPIC)
        first = self._files.first_unit(topic, queue_id)
        if first is None:
            is_before, status = runs["firstPosition"] < self._files.begin(topic), NO_QUEUE
        else:
            is_before = (runs["firstPosition"] < first[1]) & (runs["firstOffset"] >= first[0])
            status = DELETED_TOPIC
        statuses: npt.NDArray[Any] = np.where(is_before, status, NO_UNIT)
        return statuses

    def _are_without_unit(self, topic: str, queue_id: int, runs: Runs) -> Flags:
        offsets = runs["firstOffset"]
        if not self._files.has_topic(topic):
            return np.ones(len(runs), dtype=np.bool_)
        lo, hi = int(offsets.min()), int(offsets.max()) + 1
        if lo >= 0 and hi - lo <= 4 * len(runs) + UNIT_ROWS:
            return self._compare(topic, queue_id, runs, lo, hi)
        # Offsets far apart, as damage leaves them.
        each = [max(offset, 0) for offset in offsets.tolist()]
        found = [
            self._compare(topic, queue_id, runs[row : row + 1], offset, offset + 1)
            for row, offset in enumerate(each)
        ]
        return np.concatenate(found)

    def _compare(self, topic: str, queue_id: int, runs: Runs, lo: int, hi: int) -> Flags:
        """Which have no unit. Reports those whose unit has another size."""
        units_of_queue = self._files.units(topic, queue_id, lo, hi)
        own = units_of_queue[np.maximum(runs["firstOffset"] - lo, 0)]
        has_unit = (own["position"] == runs["firstPosition"]) & (own["size"] > 0)
        has_unit &= runs["firstOffset"] >= 0
        differs = has_unit & (own["size"] != runs["bytes"])
        if differs.any():
            self._report(topic, queue_id, runs[differs], OTHER_SIZE)
        without: Flags = ~has_unit
        return without

    def _report(self, topic: str, queue_id: int, runs: Runs, status: str) -> None:
        found = runs.copy()
        found["key"] = self._table.key(status, topic, queue_id)
        self._table.add(found)


def check_units(split: QueueSplit, log_folder: str) -> Iterator[Any]:
    """Runs of the units of a split that do not match their record, as batches of `RUN_COLUMNS`."""
    table = RunTable()
    try:
        files = log_files(log_folder)
    except OptionError:  # deleted since planning
        return
    begin = files[0].base if files else 0
    window: LogWindow | None = None
    for lo, batch in unit_batches(split):
        checked = _CheckedUnits(split, lo, batch, begin)
        for file in files_at(files, checked.positions[checked.found == _NO_RECORD]):
            window = checked.compare(file, window)
        for number, status in enumerate(_FINDINGS):
            rows = np.flatnonzero(checked.found == number)
            if len(rows):
                runs = checked.runs(rows)
                runs["key"] = table.key(status, split.topic, split.queue_id)
                table.add(runs)
        yield from table.full()
    yield from table.rest()


class _CheckedUnits:
    """Some units of a queue, and what was found of each, as a number: no record, until its file was looked at."""

    def __init__(self, split: QueueSplit, lo: int, batch: _Units, log_begin: int) -> None:
        self._split = split
        self._lo = lo
        self._sizes: Ints = batch["size"].astype(np.int64)
        self.positions: Ints = batch["position"].astype(np.int64)
        is_in_log = are_records(batch) & (self.positions >= log_begin)
        self.found = np.where(is_in_log, np.int8(_NO_RECORD), np.int8(_NOTHING))

    def compare(self, file: LogFile, window: LogWindow | None) -> LogWindow | None:
        """Compare the units that point into this file. Returns the window of the file that was mapped last."""
        in_file = (self.positions >= file.base) & (self.positions < file.base + file.size)
        rows = np.flatnonzero(in_file & (self.found == _NO_RECORD))
        if not len(rows):
            return window
        try:
            window = log_window(file, before=window)
        except FileNotFoundError:  # deleted since planning, and so are its records
            self.found[rows] = _NOTHING
            return window
        records = records_at(window.data, self.positions[rows] - file.base, self._sizes[rows])
        is_record = (records.sizes > 0) & (records.head("physicalOffset") == self.positions[rows])
        rows, records = rows[is_record], records.only(is_record)
        is_own = (records.head("queueId") == self._split.queue_id) & (
            records.queue_offsets == rows + self._lo
        )
        is_other_size = is_own & (records.sizes != self._sizes[rows])
        self.found[rows] = np.where(is_other_size, _OTHER_SIZE, _NOTHING)
        if not is_own.all():  # a record of another topic may have units in several queues
            of_topic = np.asarray(pc.equal(records.only(~is_own).topics(), self._split.topic))
            self.found[rows[~is_own][of_topic]] = _OTHER_RECORD
        return window

    def runs(self, rows: Ints) -> Runs:
        """One run for each of these units, without its key."""
        runs = np.zeros(len(rows), dtype=RUN)
        runs["firstOffset"] = runs["lastOffset"] = rows + self._lo
        runs["firstPosition"] = runs["lastPosition"] = self.positions[rows]
        runs["records"] = 1
        runs["bytes"] = self._sizes[rows]
        return runs
