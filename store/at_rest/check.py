"""Is a store whole? Reads everything, changes nothing, says what is wrong, where, and what a start would do.

    log          every record: length, CRC, its own position, the filler at a file's end, numbers without gaps
    queues       every unit against the record it points to, every record against its unit
    index        headers, and every entry points to a record
    checkpoint   no mark ahead of the log
    config       tables are JSON (or their backups); no stored offset is ahead of its queue

`check_store` returns a `Report`; a finding is damage (a start mends or refuses it, or readers would miss something)
or a remark. Not here: the words and the exit code, which are the command's (`pocketmq store check`). Next:
`segments.py`, `durability/recovery.py` for what a start does.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import msgspec
from pocketmq.protocol.bodies.group_config import SubscriptionGroupWrapper
from pocketmq.protocol.bodies.topic_config import TopicConfigSerializeWrapper
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.flags import TRANSACTION_COMMIT, TRANSACTION_MASK
from pocketmq.protocol.message.record import (
    BLANK,
    HEADS,
    measure_record,
    queue_offset_of,
    store_timestamp_of,
)
from pocketmq.protocol.text import fastjson

from ..config import QUEUE_UNIT_BYTES
from ..durability.checkpoint import CHECKPOINT_BYTES, FIELDS
from ..durability.foreign_parts import refuse_foreign_parts
from ..errors import StoreDamagedError
from ..lookup.index_file import HEADER, INDEX_UNIT
from ..lookup.queue_table import has_place
from ..lookup.queue_unit import BLANK_UNIT, UNIT
from ..tables.delay_table import DelayOffsets
from ..tables.offset_table import OffsetFile
from .segments import (
    Segment,
    Segments,
    count_units,
    map_file,
    queue_directories,
    refuse_open_store,
)

_MOST_OF_A_KIND: Final = 20
"""Findings of one kind about one file or queue; the rest is counted."""
_TABLES: Final[dict[str, type[Any]]] = {
    "topics.json": TopicConfigSerializeWrapper,
    "subscriptionGroup.json": SubscriptionGroupWrapper,
    "consumerOffset.json": OffsetFile,
    "delayOffset.json": DelayOffsets,
    "consumerFilter.json": dict,
}
"""Of each file of `config/` what a start reads it as."""
_MAX_TABLE_BYTES: Final = 1 << 30
_Place = tuple[str, int]
_Table = TypeVar("_Table")


class Finding(msgspec.Struct, frozen=True):
    """One thing to know. `start` is what a start would do about it."""

    severity: Literal["damage", "remark"]
    place: str
    what: str
    start: str = ""


class Report(msgspec.Struct):
    """Figures and findings of one store, as `--json` shows them."""

    store: str
    clean: bool
    """Whether the last stop was in order."""
    log_start: int = 0
    log_end: int = 0
    log_files: int = 0
    records: int = 0
    first_store_time_ms: int = -1
    last_store_time_ms: int = -1
    queues: int = 0
    units: int = 0
    index_files: int = 0
    index_entries: int = 0
    findings: list[Finding] = msgspec.field(default_factory=list)

    @property
    def damaged(self) -> bool:
        return any(finding.severity == "damage" for finding in self.findings)


def check_store(root: Path, progress: Callable[[int], None] | None = None) -> Report:
    """Read the store; `progress` is told the log position reached, now and then.

    Raises StoreError where there is no store, or somebody has it open.
    """
    refuse_open_store(root)
    check = _Check(root, progress)
    try:
        refuse_foreign_parts(root)
    except StoreDamagedError as error:
        check.damage(root, str(error), "it would refuse")
        return check.report
    check.log()
    check.queues()
    check.index()
    check.checkpoint()
    check.tables()
    if not check.report.clean:
        check.remark(
            root / "abort", "the last stop was not in order", "it would read the log again and mend the rest"
        )
    return check.report


class _Check:
    """Use once. `numbers` are, for each queue, the position and size of the record with each number."""

    def __init__(self, root: Path, progress: Callable[[int], None] | None) -> None:
        self._root = root
        self._progress = progress
        self.report = Report(str(root), clean=not (root / "abort").exists())
        self._log = Segments(root / "commitlog")
        self._numbers: dict[_Place, dict[int, tuple[int, int]]] = {}
        self._ends: dict[_Place, int] = {}
        self._counts: dict[tuple[str, str], int] = {}

    def damage(self, place: Path, what: str, start: str) -> None:
        self._find(Finding("damage", str(place), what, start))

    def remark(self, place: Path, what: str, start: str = "") -> None:
        self._find(Finding("remark", str(place), what, start))

    def _find(self, finding: Finding) -> None:
        kind = finding.place, finding.start
        self._counts[kind] = count = self._counts.get(kind, 0) + 1
        if count < _MOST_OF_A_KIND:
            self.report.findings.append(finding)
        elif count == _MOST_OF_A_KIND:
            more = msgspec.structs.replace(finding, what="and more of this kind")
            self.report.findings.append(more)

    # -- the log

    def log(self) -> None:
        log, report = self._log, self.report
        self._segments(log, refuses=True)
        report.log_files, report.log_start = len(log.files), log.start
        report.log_end = log.start
        broken: tuple[Path, int] | None = None
        for file in log.files:
            end, closed = self._records(file)
            if broken is not None and end > file.base:
                self.damage(
                    broken[0],
                    f"no record at position {broken[1]}, yet later files hold some",
                    "a scan that begins before it would cut the log there; one that begins behind it would not see it",
                )
                broken = None
            if broken is None:
                report.log_end = end
            if closed or broken is not None:
                continue
            broken = file.path, end
            if any(file.view[end - file.base : end - file.base + 8]):
                self.damage(
                    file.path,
                    f"no valid record at position {end}, though bytes stand there",
                    "it would cut the log there, if its scan begins before it",
                )

    def _records(self, file: Segment) -> tuple[int, bool]:
        """Walk one file; (end of its records, whether the filler closes it)."""
        at = 0
        while (size := measure_record(file.view, at, len(file.view))) > 0:
            self._record(file.view[at : at + size], file.base + at)
            at += size
        return (file.end, True) if size == BLANK else (file.base + at, False)

    def _record(self, record: memoryview, position: int) -> None:
        report = self.report
        report.records += 1
        timestamp = store_timestamp_of(record)
        if report.first_store_time_ms < 0:
            report.first_store_time_ms = timestamp
        report.last_store_time_ms = timestamp
        if self._progress is not None and not report.records & 0xFFFF:
            self._progress(position)
        own_position = int.from_bytes(record[28:36], "big", signed=True)
        if own_position != position:
            self.damage(
                self._log.directory, f"the record at {position} says it stands at {own_position}", "none"
            )
        sys_flag = int.from_bytes(record[36:40], "big")
        if sys_flag & TRANSACTION_MASK in (0, TRANSACTION_COMMIT):
            number = queue_offset_of(record)
            place = topic, queue_id = _place_of(record, sys_flag)
            if has_place(topic, queue_id, number):
                self._numbers.setdefault(place, {})[number] = position, len(record)
            else:
                self.damage(
                    self._log.directory,
                    f"the record at {position} wants to be number {number} of {topic!r}, queue {queue_id}: "
                    "there is no such place",
                    "it would put the record into no queue",
                )

    # -- queues

    def queues(self) -> None:
        known: set[_Place] = set()
        for topic, queue_id, directory in queue_directories(self._root):
            known.add((topic, queue_id))
            self._queue((topic, queue_id), Segments(directory))
        for place, numbers in self._numbers.items():
            if place not in known:
                self.damage(
                    self._root / "consumequeue" / place[0] / str(place[1]),
                    f"is missing; the log holds {len(numbers)} messages of it",
                    "it would make the queue again from where its scan of the log begins",
                )
                self._ends[place] = max(numbers) + 1

    def _queue(self, place: _Place, queue: Segments) -> None:
        self._segments(queue, refuses=False)
        self.report.queues += 1
        missing = dict(self._numbers.get(place, {}))
        end = 0
        for file in queue.files:
            count = count_units(file)
            end = file.base // QUEUE_UNIT_BYTES + count
            self.report.units += count
            self._units(place, file, count, missing)
            if count * QUEUE_UNIT_BYTES < len(file.view) and file is not queue.files[-1]:
                self.damage(
                    file.path,
                    f"ends after unit {end - 1}, yet there are later files",
                    "it would fill it again",
                )
        self._ends[place] = max(end, max(missing, default=-1) + 1)
        first = queue.start // QUEUE_UNIT_BYTES
        older = sum(number < first for number in missing)
        if older:
            # Queue files go after log files; a power loss may bring back the one without the other.
            self.remark(queue.directory, f"{older} older messages still in the log are not in it any more")
        for number in sorted(number for number in missing if number >= first)[:_MOST_OF_A_KIND]:
            self.damage(
                queue.directory,
                f"has no unit {number}; the record is at position {missing[number][0]}",
                "it would add the unit, if its scan of the log begins before the record",
            )

    def _units(self, place: _Place, file: Segment, count: int, missing: dict[int, tuple[int, int]]) -> None:
        numbers = self._numbers.get(place, {})
        is_light = place[0].startswith("%LMQ%")
        first = file.base // QUEUE_UNIT_BYTES
        units = UNIT.iter_unpack(file.view[: count * QUEUE_UNIT_BYTES])
        for number, unit in enumerate(units, first):
            position, size, _ = unit
            if unit == BLANK_UNIT or position < self._log.start or is_light:
                continue
            expected = numbers.get(number)
            if expected == (position, size):
                missing.pop(number, None)
            elif position >= self.report.log_end:
                self.damage(file.path, f"unit {number} points behind the log's end", "it would drop the unit")
            else:
                missing.pop(number, None)
                self.damage(
                    file.path,
                    f"unit {number} points to position {position}, where its message is not",
                    "it would keep the unit: readers would get another message or none",
                )

    def _segments(self, segments: Segments, *, refuses: bool) -> None:
        for path, what in segments.problems:
            is_last_and_empty = what == "is empty" and (
                not segments.files or path.name > segments.files[-1].path.name
            )
            if is_last_and_empty:
                self.remark(path, what, "it would delete the file")
            else:
                fills = not refuses and what == "is missing"
                self.damage(
                    path, what, "it would fill the queue again from the log" if fills else "it would refuse"
                )

    # -- index, checkpoint, tables

    def index(self) -> None:
        folder = self._root / "index"
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            if path.is_file() and path.name.isdecimal():
                self._index_file(path, map_file(path))

    def _index_file(self, path: Path, view: memoryview) -> None:
        rebuilt = "it would keep the file after a stop in order, and make it again after any other"
        self.report.index_files += 1
        if len(view) < HEADER.size:
            self.damage(path, f"is {len(view)} bytes long", "it would refuse")
            return
        begin_ms, end_ms, begin, end, _, count = HEADER.unpack_from(view, 0)
        units_at = _units_at(len(view))
        if units_at is None:
            self.remark(path, "is of no common size: its entries were not looked at")
            return
        if not 0 <= count <= (len(view) - units_at) // INDEX_UNIT.size or begin > end or begin_ms > end_ms:
            self.damage(path, f"its head is impossible: {count} entries from {begin} to {end}", rebuilt)
            return
        self.report.index_entries += max(count - 1, 0)
        for number in range(1, count):
            _, position, seconds, previous = INDEX_UNIT.unpack_from(view, units_at + INDEX_UNIT.size * number)
            if not begin <= position <= end or seconds < 0 or previous >= number:
                self.damage(
                    path, f"entry {number} is impossible (position {position}, before it {previous})", rebuilt
                )
            elif position >= self.report.log_end:
                self.damage(
                    path, f"entry {number} points behind the log's end", "it would make the file again"
                )

    def checkpoint(self) -> None:
        path = self._root / "checkpoint"
        if not path.exists():
            self.remark(path, "is missing", "it would read the whole log after a stop that was not in order")
            return
        data = path.read_bytes()
        if len(data) != CHECKPOINT_BYTES:
            self.damage(
                path, f"is {len(data)} bytes long, not {CHECKPOINT_BYTES}", "it would take zeros for the rest"
            )
        *times, _, confirm, logics = FIELDS.unpack(data[: FIELDS.size].ljust(FIELDS.size, b"\0"))
        for name, position in (("confirmPhyOffset", confirm), ("logicsPhysicalOffset", logics)):
            if position > self.report.log_end:
                self.damage(
                    path,
                    f"{name} {position} is behind the log's end {self.report.log_end}",
                    "it would lower it",
                )
        for name, time_ms in zip(("physic", "logics", "index"), times, strict=False):
            if time_ms > self.report.last_store_time_ms >= 0:
                self.damage(path, f"{name}MsgTimestamp {time_ms} is newer than the newest message", "none")

    def tables(self) -> None:
        tables = {name: self._table(self._root / "config" / name, form) for name, form in _TABLES.items()}
        topics = tables["topics.json"]
        if topics is not None:
            for topic in sorted({topic for topic, _ in self._numbers} - set(topics.topic_config_table)):
                self.remark(
                    self._root / "config" / "topics.json", f"does not know topic {topic}, which has messages"
                )
        offsets = tables["consumerOffset.json"]
        if offsets is not None:
            self._offsets(offsets)

    def _table(self, path: Path, form: type[_Table]) -> _Table | None:
        """What the file or its backup says; None where neither says anything."""
        faults = []
        for candidate, start in (
            (path, "it would use the backup"),
            (path.with_name(path.name + ".bak"), ""),
        ):
            if not candidate.exists() or not candidate.stat().st_size:
                continue
            try:
                table = fastjson.decode(candidate.read_bytes(), form, max_bytes=_MAX_TABLE_BYTES)
            except BodyError as error:
                faults.append((candidate, f"is damaged: {error}", start))
                continue
            for place, what, consequence in faults:
                self.damage(place, what, consequence)
            return table
        for place, what, _ in faults:
            self.damage(place, what, "it would refuse")
        return None

    def _offsets(self, table: OffsetFile) -> None:
        path = self._root / "config" / "consumerOffset.json"
        for key, queues in table.offset_table.items():
            topic, _, group = key.partition("@")
            for queue_id, offset in queues.items():
                end = self._ends.get((topic, queue_id))
                if end is not None and offset > end:
                    self.damage(
                        path,
                        f"group {group} stands at {offset} of {topic}-{queue_id}, which ends at {end}",
                        "it would keep the offset; consumers correct it when they pull",
                    )


def _place_of(record: memoryview, sys_flag: int) -> _Place:
    """Topic and queue id of a measured record."""
    at = HEADS[(sys_flag >> 4) & 3].size
    at += int.from_bytes(record[at - 4 : at], "big")
    width = 1 if record[7] == 0xA7 else 2
    length = int.from_bytes(record[at : at + width], "big")
    return str(record[at + width : at + width + length], "utf-8", "replace"), int.from_bytes(
        record[12:16], "big", signed=True
    )


def _units_at(file_bytes: int) -> int | None:
    """Where the units of an index file of this size begin, if it was made with four times as many units as slots,
    as by default; None otherwise."""
    slots, rest = divmod(file_bytes - HEADER.size, 4 + 4 * INDEX_UNIT.size)
    return HEADER.size + 4 * slots if not rest else None
