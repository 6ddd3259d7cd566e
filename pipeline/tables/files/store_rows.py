"""The rows of a store's tables as Arrow arrays, the same for Spark's format and for the tables without a JVM.

What is scanned comes as `ScannedRecords`; a row that stands for damage has its position, file and status, and is null
elsewhere.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ..records.columns import CONSUME_QUEUE_COLUMNS, CONSUMER_OFFSET_COLUMNS, STORE_COLUMNS, arrow_schema
from ..records.slices import repeated
from .consume_queues import QueueSplit, are_records, unit_batches
from .log_files import LogFile
from .run_statuses import OK
from .scan import ScannedRecords

MISSING: Final = "missing"
"""The status of a hole between two files of the log."""


def hole_after(file: LogFile) -> ScannedRecords:
    """What stands for the bytes that are missing between a file and the next one."""
    return ScannedRecords(file, bad_position=file.base + file.size, bad_status=MISSING)


def column_of(found: ScannedRecords, name: str) -> Any:
    """One column of records with their file and status, or of the row that stands for damage."""
    if found.records is None:
        place = {"file": found.file.path, "physicalOffset": found.bad_position}
        values = {**place, "status": found.bad_status}
        return pa.array([values.get(name)], type=STORE_COLUMNS[name][1])
    count = len(found.records)
    if name == "file":
        return repeated(found.file.path, count)
    if name == "status":
        return repeated(OK, count) if found.statuses is None else found.statuses
    return found.records.column(name)


def unit_rows(split: QueueSplit) -> Iterator[Any]:
    """The written units of a split, as batches of `CONSUME_QUEUE_COLUMNS`."""
    schema = arrow_schema(CONSUME_QUEUE_COLUMNS, list(CONSUME_QUEUE_COLUMNS))
    for first, found in unit_batches(split):
        offsets = np.arange(first, first + len(found), dtype=np.int64)
        written = are_records(found)
        found, offsets = found[written], offsets[written]
        arrays = [
            repeated(split.topic, len(found)),
            pa.repeat(pa.scalar(split.queue_id, pa.int32()), len(found)),
            pa.array(offsets),
            pa.array(found["position"].astype(np.int64)),
            pa.array(found["size"].astype(np.int32)),
            pa.array(found["tags_code"].astype(np.int64)),
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def consumer_offset_rows(rows: Sequence[tuple[str, str, int, int]]) -> Any:
    """The rows of a consumer offset table, as a batch of `CONSUMER_OFFSET_COLUMNS`."""
    schema = arrow_schema(CONSUMER_OFFSET_COLUMNS, list(CONSUMER_OFFSET_COLUMNS))
    return pa.RecordBatch.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
