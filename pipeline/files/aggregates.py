"""The two aggregates of a log: its runs (`runs.py`) and its statistics, each from one scan of a split.

`scan_runs` also tells damage, and with a store's folder what does not match the consume queues (`queue_check.py`).
`scan_statistics` counts messages and bytes by topic, queue, tag and minute, or by fewer of them. Both hold a bounded
number of rows and hand over the rest, so a group may have several rows: sum them.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..records.columns import RUN_COLUMNS, STATISTIC_COLUMNS
from ..records.records import Records
from ..records.slices import repeated
from .log_files import LogSplit
from .queue_check import RecordCheck
from .run_statuses import OK
from .runs import RunTable, in_queues, merge_ordered, ordered_by_queue, runs_of, times_of
from .scan import BAD_CRC, ScannedRecords, ScanOptions, scan_log

GROUPS: Final = ("topic", "queueId", "tags", "minute")
MOST_GROUPS: Final = 1 << 16
_MINUTE_MS: Final = 60_000
_SUMS: Final = ("messages", "bytes", "bodyBytes")


def scan_runs(split: LogSplit, options: ScanOptions, *, root: str | None = None) -> Iterator[Any]:
    """Batches of `RUN_COLUMNS`. With `root`, the store's folder, records are compared with the consume queues."""
    table = RunTable()
    # Without any unit, a store has lost its queues: then all records are compared.
    check = None if root is None else RecordCheck(root, table, split.known_end or 1 << 62)
    for found in scan_log(split, options):
        if found.records is None or found.statuses is not None:
            yield damage_row(found)
        records = _usable(found)
        if not len(records):
            continue
        keys = table.keys(records.topics(), records.head("queueId").astype(np.int64))
        runs = ordered_by_queue(runs_of(records, keys, found.file.base))
        if check is not None:
            runs = check.check(runs)
        table.add(merge_ordered(runs))
        yield from table.full()
    yield from table.rest()


def _usable(found: ScannedRecords) -> Records:
    """The records that are in queues. One with a damaged body is still in its queue."""
    if found.records is None:
        return Records(b"", [])
    mask = in_queues(found.records)
    if found.statuses is not None:
        usable = pc.is_in(found.statuses, value_set=pa.array([OK, BAD_CRC]))
        mask &= np.asarray(usable, dtype=np.bool_)
    return found.records if mask.all() else found.records.only(mask)


def damage_row(found: ScannedRecords) -> Any:
    """A batch with a row for each damaged record, or for the position without one."""
    if found.records is None:
        values = {"status": found.bad_status, "file": found.file.path, "records": 0, "bytes": 0}
        position = found.file.base + found.bad_position
        values |= {"firstPosition": position, "lastPosition": position}
        arrays = [pa.array([values.get(name)], type=kind) for name, (_, kind) in RUN_COLUMNS.items()]
        return pa.RecordBatch.from_arrays(arrays, names=list(RUN_COLUMNS))
    is_bad = pc.not_equal(found.statuses, OK)
    records = found.records.only(np.asarray(is_bad, dtype=np.bool_))
    count = len(records)
    positions = pa.array(records.starts + found.file.base)
    times = times_of(records.store_times_ms)
    columns = {
        "status": found.statuses.filter(is_bad),
        "topic": records.topics(),
        "queueId": records.column("queueId"),
        **dict.fromkeys(("firstOffset", "lastOffset"), records.column("queueOffset")),
        **dict.fromkeys(("firstPosition", "lastPosition"), positions),
        "records": pa.array(np.ones(count, dtype=np.int64)),
        "bytes": pa.array(records.sizes),
        **dict.fromkeys(("firstTime", "lastTime"), times),
        "file": repeated(found.file.path, count),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in RUN_COLUMNS], names=list(RUN_COLUMNS))


def scan_statistics(split: LogSplit, options: ScanOptions, groups: Sequence[str] = GROUPS) -> Iterator[Any]:
    """Batches of `STATISTIC_COLUMNS`; columns that are not in `groups` are null."""
    pieces: list[Any] = []
    rows = 0
    for found in scan_log(split, options):
        if found.records is None:
            continue
        pieces.append(_counted(found.records, groups))
        rows += pieces[-1].num_rows
        if rows >= MOST_GROUPS:
            pieces = [_summed(pa.concat_tables(pieces), groups)]
            rows = pieces[0].num_rows
            if rows > MOST_GROUPS // 2:
                yield from _statistics(pieces.pop(), groups)
                rows = 0
    if pieces:
        yield from _statistics(_summed(pa.concat_tables(pieces), groups), groups)


def _counted(records: Records, groups: Sequence[str]) -> Any:
    begin, end = records.body_bounds
    columns = {
        "messages": pa.array(np.ones(len(records), dtype=np.int64)),
        "bytes": pa.array(records.sizes),
        "bodyBytes": pa.array(end - begin),
    }
    for name in groups:
        if name == "minute":
            columns[name] = pa.array(records.store_times_ms // _MINUTE_MS)
        else:
            columns[name] = records.column(name)
    return _summed(pa.table(columns), groups)


def _summed(rows: Any, groups: Sequence[str]) -> Any:
    if not groups:
        return pa.table({name: [pc.sum(rows.column(name)).as_py() or 0] for name in _SUMS})
    found = rows.group_by(list(groups), use_threads=False).aggregate([(name, "sum") for name in _SUMS])
    return found.rename_columns([name.removesuffix("_sum") for name in found.column_names])


def _statistics(rows: Any, groups: Sequence[str]) -> Iterator[Any]:
    arrays = []
    for name, (_, kind) in STATISTIC_COLUMNS.items():
        if name not in rows.column_names:
            arrays.append(pa.nulls(rows.num_rows, kind))
        elif name == "minute":
            microseconds = pc.multiply(rows.column(name), _MINUTE_MS * 1000)
            arrays.append(microseconds.combine_chunks().cast(kind))
        else:
            arrays.append(rows.column(name).combine_chunks().cast(kind))
    yield pa.RecordBatch.from_arrays(arrays, names=list(STATISTIC_COLUMNS))
