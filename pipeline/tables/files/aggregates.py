"""The two aggregates of a log: its runs (`runs.py`) and its statistics, each from one scan of a split.

`scan_runs` also tells damage, and with a store's folder what does not match the consume queues (`queue_check.py`).
`scan_statistics` counts messages and bytes by topic, queue, tag and minute, or by fewer of them, and keeps the largest
size and the first and last time. Both hold a bounded number of rows and hand over the rest, so a group may have several
rows: sum them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..records.columns import RUN_COLUMNS, STATISTIC_COLUMNS
from ..records.records import Records
from ..records.slices import Ints, repeated
from .log_files import LogSplit
from .queue_check import RecordCheck
from .run_statuses import OK
from .runs import RunTable, in_queues, merge_ordered, ordered_by_queue, runs_of, times_of
from .scan import BAD_CRC, ScannedRecords, ScanOptions, scan_log

GROUPS: Final = ("topic", "queueId", "tags", "minute")
MAX_GROUPS: Final = 1 << 16
_MINUTE_MS: Final = 60_000
_SUMS: Final = ("messages", "bytes", "bodyBytes")
_EXTREMES: Final = {"largest": "max", "firstTime": "min", "lastTime": "max"}
_TO_MICROSECONDS: Final = {"minute": _MINUTE_MS * 1000, "firstTime": 1000, "lastTime": 1000}


def scan_runs(split: LogSplit, options: ScanOptions, *, root: str | None = None) -> Iterator[Any]:
    """Batches of `RUN_COLUMNS`. With `root`, the store's folder, records are compared with the consume queues."""
    table = RunTable()
    # Without any unit, a store has lost its queues: then all records are compared.
    check = None if root is None else RecordCheck(root, table, split.known_end or 1 << 62)
    for found in scan_log(split, options):
        if found.records is None or found.statuses is not None:
            yield damage_row(found)
        records = None if found.records is None else _usable(found.records, found.statuses)
        if not records:
            continue
        keys = table.keys(*records.codes("topic"), records.head("queueId").astype(np.int64))
        runs = ordered_by_queue(runs_of(records, keys, found.base))
        if check is not None:
            runs = check.check(runs)
        table.add(merge_ordered(runs))
        yield from table.full()
    yield from table.rest()


def _usable(records: Records, statuses: Any) -> Records:
    """The records that are in queues. One with a damaged body is still in its queue."""
    mask = in_queues(records)
    if statuses is not None:
        usable = pc.is_in(statuses, value_set=pa.array([OK, BAD_CRC]))
        mask &= np.asarray(usable, dtype=np.bool_)
    return records.only(mask)


def damage_row(found: ScannedRecords) -> Any:
    """A batch with a row for each damaged record, or for the position without one."""
    if found.records is None:
        values = {"status": found.bad_status, "file": found.file.path, "records": 0, "bytes": 0}
        values |= dict.fromkeys(("firstPosition", "lastPosition"), found.bad_position)
        arrays = [pa.array([values.get(name)], type=kind) for name, (_, kind) in RUN_COLUMNS.items()]
        return pa.RecordBatch.from_arrays(arrays, names=list(RUN_COLUMNS))
    is_bad = pc.not_equal(found.statuses, OK)
    records = found.records.only(np.asarray(is_bad, dtype=np.bool_))
    count = len(records)
    positions = pa.array(records.starts + found.base)
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


def scan_statistics(
    split: LogSplit, options: ScanOptions, names: Sequence[str] = tuple(STATISTIC_COLUMNS)
) -> Iterator[Any]:
    """Batches of `STATISTIC_COLUMNS`, grouped by those of `GROUPS` in `names`.

    The sums are always there; other columns that are not in `names` are null.
    """
    groups = [name for name in GROUPS if name in names]
    kinds = dict.fromkeys(_SUMS, "sum") | {name: how for name, how in _EXTREMES.items() if name in names}
    pieces: list[Any] = []
    rows = 0
    for found in scan_log(split, options):
        if found.records is None:
            continue
        pieces.append(_counted(found.records, groups, kinds))
        rows += pieces[-1].num_rows
        if rows >= MAX_GROUPS:
            pieces = [_summed(pa.concat_tables(pieces), groups, kinds)]
            rows = pieces[0].num_rows
            if rows > MAX_GROUPS // 2:
                yield _statistics(pieces.pop())
                rows = 0
    if pieces:
        yield _statistics(_summed(pa.concat_tables(pieces), groups, kinds))


def _counted(records: Records, groups: Sequence[str], kinds: Mapping[str, str]) -> Any:
    """What some records add up to by group: a row for each group that they have.

    A group is a number, made of the numbers of its values, so that one pass adds up all records.
    """
    begin, end = records.body_bounds
    sums = {"bytes": records.sizes, "bodyBytes": end - begin}
    times = records.store_times_ms
    extremes = {"largest": records.sizes, "firstTime": times, "lastTime": times}
    extremes = {name: column for name, column in extremes.items() if name in kinds}
    values = {name: _minutes(records) if name == "minute" else records.codes(name) for name in groups}
    if math.prod(len(distinct) for distinct, _ in values.values()) > MAX_GROUPS:
        ones = np.ones(len(records), dtype=np.int64)
        columns = {name: pa.array(column) for name, column in {"messages": ones, **sums, **extremes}.items()}
        for name, (distinct, codes) in values.items():
            columns[name] = distinct.take(pa.array(np.zeros_like(ones) if codes is None else codes))
        return _summed(pa.table(columns), groups, kinds)
    numbers = np.zeros(len(records), dtype=np.int64)
    for distinct, codes in values.values():
        if codes is not None:
            numbers = numbers * len(distinct) + codes
    counts = np.bincount(numbers)
    found = np.flatnonzero(counts)
    columns = {"messages": pa.array(counts[found])}
    for name, column in sums.items():  # in floating point, which is exact far beyond the bytes of a batch
        columns[name] = pa.array(np.bincount(numbers, column)[found].astype(np.int64))
    if extremes:
        order = np.argsort(numbers, kind="stable")
        first_of_group = np.searchsorted(numbers[order], found)
        for name, column in extremes.items():
            pick = np.maximum if kinds[name] == "max" else np.minimum
            columns[name] = pa.array(pick.reduceat(column[order], first_of_group))
    for name, (distinct, codes) in reversed(values.items()):
        of_group = np.zeros_like(found)
        if codes is not None:
            found, of_group = np.divmod(found, len(distinct))
        columns[name] = distinct.take(pa.array(of_group))
    return pa.table({name: columns[name] for name in (*groups, *kinds)})


def _minutes(records: Records) -> tuple[Any, Ints | None]:
    """The minutes since 1970 in which the records were stored, and which of them is each one's."""
    minutes = records.store_times_ms // _MINUTE_MS
    if len(minutes) and minutes.min() == minutes.max():
        return pa.array(minutes[:1]), None
    encoded = pa.array(minutes).dictionary_encode()
    return encoded.dictionary, np.asarray(encoded.indices).astype(np.int64)


def _summed(rows: Any, groups: Sequence[str], kinds: Mapping[str, str]) -> Any:
    if not groups:
        found = {name: getattr(pc, how)(rows.column(name)).as_py() for name, how in kinds.items()}
        found |= {name: found[name] or 0 for name in _SUMS}
        return pa.table({name: pa.array([value], pa.int64()) for name, value in found.items()})
    table = rows.group_by(list(groups), use_threads=False).aggregate(list(kinds.items()))
    name_of = {f"{name}_{how}": name for name, how in kinds.items()}
    renamed = table.rename_columns([name_of.get(name, name) for name in table.column_names])
    return renamed.select([*groups, *kinds])


def _statistics(rows: Any) -> Any:
    arrays = []
    for name, (_, kind) in STATISTIC_COLUMNS.items():
        if name not in rows.column_names:
            arrays.append(pa.nulls(rows.num_rows, kind))
            continue
        column = rows.column(name)
        if name in _TO_MICROSECONDS:
            column = pc.multiply(column, _TO_MICROSECONDS[name])
        arrays.append(column.combine_chunks().cast(kind))
    return pa.RecordBatch.from_arrays(arrays, names=list(STATISTIC_COLUMNS))
