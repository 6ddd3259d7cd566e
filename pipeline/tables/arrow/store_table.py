"""The messages of store directories as a table: planned as tasks, each read by itself, here or in another process.

A task is a split of the commit log, the units of a queue, records at known positions, or a hole between two log files.
What a condition rules out is not read: whole files and splits by store time and log position, and records of other
topics by the consume queues if the wanted topics are a small part of the log (`files/queue_index.py`). Store times are
taken to rise in a log, except for a clock that was set back by up to `CLOCK_SLACK_MS`.
"""

import functools
import itertools
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pocketmq.protocol.message.record import MIN_RECORD_BYTES

from ...errors import PATH, CorruptStoreError, OptionError, PathError
from ..files.consume_queues import QueueSplit, known_log_end, queue_splits
from ..files.log_files import LogFile, LogSplit, log_files, log_holes, log_splits, log_window, splits_after
from ..files.queue_index import FoundRecords, find_by_queues, find_uncovered, read_found
from ..files.run_statuses import OK
from ..files.scan import FAIL, HOW_TO_GO_ON, REPORT, SKIP, ScannedRecords, ScanOptions, scan_log, scan_queue
from ..planning.option_values import names_in
from ..records.boundaries import find_record
from ..records.columns import STORE_COLUMNS, TIMESTAMP, arrow_schema
from ..records.records import scan
from ..records.slices import repeated
from .conditions import columns_in, possible_parts, rows_matching, topics_wanted
from .tasks import Task

_log = logging.getLogger("pocketmq.pipeline")

SPLIT_BYTES: Final = 8 * 1024 * 1024
BATCH_ROWS: Final = 16_384
CLOCK_SLACK_MS: Final = 60_000
MIN_UNITS: Final = 1000
"""Units of a task by queue: fewer take less time than Spark needs to start a task."""
ON_CORRUPT: Final = (FAIL, SKIP, REPORT)
MISSING: Final = "missing"
"""The status of a hole between two files of the log."""


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One store directory, and how it is read; picklable."""

    root: str
    log_folder: str
    """Or the URL of the store."""
    scan: ScanOptions

    def queues_root(self) -> Path:
        return Path(self.root) / "consumequeue"


class LogTask(msgspec.Struct, frozen=True):
    """The records that begin in a split of the log."""

    settings: StoreSettings
    split: LogSplit

    def batches(self, names: Sequence[str], condition: Any) -> Iterator[Any]:
        return _batches(scan_log(self.split, self.settings.scan), names, condition)

    def guarantee(self) -> Any:
        position, base = pc.field("physicalOffset"), self.split.file.base
        return (position >= base + self.split.begin) & (position < base + self.split.end)


class ScanTask(msgspec.Struct, frozen=True):
    """Records at known positions, or what stands for a hole: what `scan` finds."""

    scan: Callable[[], Iterator[ScannedRecords]]

    def batches(self, names: Sequence[str], condition: Any) -> Iterator[Any]:
        return _batches(self.scan(), names, condition)


class Cut(msgspec.Struct, frozen=True):
    """How a store is cut into tasks: bytes of the log in each, how many at least, and whether by queue."""

    split_bytes: int = SPLIT_BYTES
    min_tasks: int = 1
    by_queue: bool = False


def store_settings(
    root: str,
    *,
    broker_name: str | None = None,
    topics: Sequence[str] | str | None = None,
    on_corrupt: str = FAIL,
    verify_crc: bool | None = None,
    decompress: bool = True,
    commit_log_path: str | None = None,
    decode_rows: int | None = None,
) -> StoreSettings:
    """`OptionError` for a value that is not allowed."""
    if on_corrupt not in ON_CORRUPT:
        raise OptionError("on_corrupt", f"must be one of {', '.join(ON_CORRUPT)}, got {on_corrupt!r}")
    scan = ScanOptions(
        topics=frozenset(topic_names(topics)),
        on_corrupt=on_corrupt,
        verifies_crc=on_corrupt == REPORT if verify_crc is None else verify_crc,
        decompresses=decompress,
        decode_rows=decode_rows or BATCH_ROWS,
        broker_name=broker_name,
    )
    return StoreSettings(
        root=str(root), log_folder=str(commit_log_path or Path(root) / "commitlog"), scan=scan
    )


def topic_names(topics: Sequence[str] | str | None) -> list[str]:
    """Names in a list, or in a text with commas. `OptionError` for an empty text or list."""
    if topics is None:
        return []
    names = names_in(topics if isinstance(topics, str) else ",".join(topics))
    if not names:
        raise OptionError("topics", f"must name a topic, got {topics!r}")
    return names


def plan_messages(settings: StoreSettings, cut: Cut, condition: Any) -> list[Task]:
    """The tasks of one store, in the order of its log, or of its queues. `PathError` for a folder without these,
    `CorruptStoreError` for a hole that must fail."""
    files, schema = log_files(settings.log_folder), arrow_schema(STORE_COLUMNS)
    if cut.by_queue and files and not settings.queues_root().is_dir():
        raise PathError(PATH, f"{settings.queues_root()} is not a folder; driver=commitlog reads without it")
    queues = queue_splits(settings.queues_root(), frozenset())
    known_end = known_log_end(queues)
    splits = log_splits(files, cut.split_bytes, cut.min_tasks, known_end)
    known = sorted({queue.topic for queue in queues})
    wanted = topics_wanted(condition, schema, known)
    topics = settings.scan.topics or wanted or frozenset()
    if topics:
        settings = msgspec.structs.replace(
            settings, scan=msgspec.structs.replace(settings.scan, topics=topics)
        )
    tasks: list[Task] = [LogTask(settings, split) for split in splits]
    rest = [LogTask(settings, split) for split in splits_after(splits, known_end)]
    if cut.by_queue:
        lost = find_uncovered(settings.queues_root(), files, queues, topics, known_end)
        if lost is not None:
            rows = _rows_of_a_split(files, queues, known_end, cut.split_bytes)
            of_queues = queue_splits(settings.queues_root(), topics, rows)
            tasks = [
                *(ScanTask(functools.partial(_scan_queue, settings, split)) for split in of_queues),
                *_units_tasks(settings, lost),
                *rest,
            ]
        else:
            _log.warning(
                "%s: consume queues and log do not match: read in the order of the log", settings.root
            )
    elif topics and settings.scan.on_corrupt != REPORT:
        found = find_by_queues(settings.queues_root(), files, queues, topics, known_end)
        if found is not None:
            tasks = [*_units_tasks(settings, found), *rest]
    tasks = _possible(tasks, condition, schema)
    holes = (functools.partial(iter, (hole,)) for hole in find_holes(settings, files))
    return [*map(ScanTask, holes), *tasks]


def _rows_of_a_split(files: list[LogFile], queues: list[QueueSplit], known_end: int, split_bytes: int) -> int:
    """Units of about `split_bytes` of records, by the mean of the log."""
    count = sum(queue.hi - queue.lo for queue in queues)
    known = known_end - min((file.base for file in files), default=0)
    mean = max(known // count, MIN_RECORD_BYTES) if count and known > 0 else MIN_RECORD_BYTES
    return max(split_bytes // mean, MIN_UNITS)


def find_holes(settings: StoreSettings, files: list[LogFile]) -> list[ScannedRecords]:
    """The bytes missing after some files, which the scan of no file would notice; none unless they are reported.

    `CorruptStoreError` if damage must fail.
    """
    holes, on_corrupt = log_holes(files), settings.scan.on_corrupt
    for file, size in holes:
        damage = f"{file.path}: {size} bytes of the log are missing after it"
        if on_corrupt == FAIL:
            raise CorruptStoreError(damage, HOW_TO_GO_ON)
        if on_corrupt == SKIP:
            _log.warning("skipped: %s", damage)
    if on_corrupt != REPORT:
        return []
    return [ScannedRecords(file, bad_position=file.base + file.size, bad_status=MISSING) for file, _ in holes]


def _possible(tasks: list[Task], condition: Any, schema: Any) -> list[Task]:
    """The tasks that may have a row. First by position and by the time of each file, then by that of each split."""
    if condition is None:
        return tasks
    splits = [task for task in tasks if isinstance(task, LogTask)]
    others = [task for task in tasks if not isinstance(task, LogTask)]
    splits = [
        splits[number] for number in possible_parts(condition, schema, [one.guarantee() for one in splits])
    ]
    if "storeTimestamp" in columns_in(condition, schema.names):
        files = [list(group) for _, group in itertools.groupby(splits, lambda task: task.split.file)]
        begins = [_first_time(group[0].split) for group in files]
        splits = [
            task
            for number in possible_parts(condition, schema, _time_guarantees(begins))
            for task in _possible_in_file(files[number], begins[number + 1 :], condition, schema)
        ]
    return [*others, *splits]


def _possible_in_file(
    tasks: list[LogTask], later: list[int | None], condition: Any, schema: Any
) -> list[LogTask]:
    """The same for the splits of one file; `later` are the first times of the files after it."""
    begins = [_first_time(task.split) for task in tasks]
    guarantees = _time_guarantees([*begins, *later])[: len(tasks)]
    return [tasks[number] for number in possible_parts(condition, schema, guarantees)]


def _first_time(split: LogSplit) -> int | None:
    """The store time of the first record of a split; None if it has none that can be read. Behind a URL it is not
    looked for: each split would be a request."""
    if split.file.url is not None:
        return None
    data = log_window(split.file).data
    position = find_record(data, split.begin, min(split.end, len(data)), split.file.base)
    if position >= min(split.end, len(data)):
        return None
    return int(scan(data, position, position + 1, most=1).store_times_ms[0])


def _time_guarantees(begins: list[int | None]) -> list[Any]:
    """What the store times of the parts must be: between the first of a part and the first of a later one."""
    time, guarantees = pc.field("storeTimestamp"), []
    for number, begin in enumerate(begins):
        after = next((later for later in begins[number + 1 :] if later is not None), None)
        guarantee = pc.scalar(True)
        is_set_back = begin is not None and after is not None and after < begin - CLOCK_SLACK_MS
        if begin is not None and not is_set_back:  # where the clock was set back further, nothing is known
            guarantee = time >= pa.scalar((begin - CLOCK_SLACK_MS) * 1000, TIMESTAMP)
            if after is not None:
                guarantee &= time <= pa.scalar((after + CLOCK_SLACK_MS) * 1000, TIMESTAMP)
        guarantees.append(guarantee)
    return guarantees


# -- topics that are a small part of the log


def _units_tasks(settings: StoreSettings, found: list[FoundRecords]) -> Iterator[Task]:
    step = 4 * BATCH_ROWS
    for each in found:
        for begin in range(0, len(each.positions), step):
            chosen = slice(begin, begin + step)
            some = FoundRecords(each.file, each.positions[chosen], each.sizes[chosen])
            yield ScanTask(functools.partial(read_found, some, settings.scan))


# -- rows


def _scan_queue(settings: StoreSettings, split: QueueSplit) -> Iterator[ScannedRecords]:
    """The records that the units of a queue lead to, in the order of the queue."""
    files = log_files(settings.log_folder)  # not in the task: a large store has a thousand
    return scan_queue(split, files, settings.scan)


def _batches(found: Iterator[ScannedRecords], names: Sequence[str], condition: Any) -> Iterator[Any]:
    schema = arrow_schema(STORE_COLUMNS, names)
    tested = [] if condition is None else columns_in(condition, list(STORE_COLUMNS))
    of_condition = arrow_schema(STORE_COLUMNS, tested)
    for each in found:
        if condition is not None:
            few = pa.RecordBatch.from_arrays([_column(each, name) for name in tested], schema=of_condition)
            mask = rows_matching(condition, few)
            if not mask.any():
                continue
            if each.records is not None and not mask.all():
                statuses = None if each.statuses is None else each.statuses.filter(pa.array(mask))
                each = ScannedRecords(each.file, each.base, each.records.only(mask), statuses)
        yield pa.RecordBatch.from_arrays([_column(each, name) for name in names], schema=schema)


def _column(found: ScannedRecords, name: str) -> Any:
    """One column of records with their file and status. A row that stands for damage is null but for its place."""
    if found.records is None:
        values = {"file": found.file.path, "physicalOffset": found.bad_position, "status": found.bad_status}
        return pa.array([values.get(name)], type=STORE_COLUMNS[name][1])
    count = len(found.records)
    if name == "file":
        return repeated(found.file.path, count)
    if name == "status":
        return repeated(OK, count) if found.statuses is None else found.statuses
    return found.records.column(name)
