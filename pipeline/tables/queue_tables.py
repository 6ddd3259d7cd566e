"""The small tables of a store: the units of its consume queues, and the offsets of its consumer groups."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ..errors import PathError
from ..files.consume_queues import PRE_BLANK, QueueSplit, consumer_offsets, queue_splits, units
from ..records.columns import CONSUME_QUEUE_COLUMNS, CONSUMER_OFFSET_COLUMNS, arrow_schema
from ..records.slices import repeated
from .processes import Progress

UNIT_ROWS: Final = 1 << 16


class ConsumeQueueTable:
    """One row for each written unit of the consume queues."""

    progress: Progress | None = None

    def __init__(self, root: str, topics: frozenset[str] = frozenset()) -> None:
        self.schema = arrow_schema(CONSUME_QUEUE_COLUMNS, list(CONSUME_QUEUE_COLUMNS))
        self._root = Path(root) / "consumequeue"
        self._topics = topics

    def check(self) -> None:
        """`PathError` for a store without consume queues."""
        if not self._root.is_dir():
            raise PathError(f"{self._root} is not a folder; table consumequeue needs the consume queues")

    def batches(self, names: Sequence[str], condition: Any) -> Iterator[Any]:
        self.check()
        for split in queue_splits(self._root, self._topics):
            for first in range(split.lo, split.hi, UNIT_ROWS):
                batch = _units(split, first, min(first + UNIT_ROWS, split.hi))
                yield (batch if condition is None else batch.filter(condition)).select(list(names))


def _units(split: QueueSplit, first: int, end: int) -> Any:
    found = units(split.folder, first, end)
    offsets = np.arange(first, first + len(found), dtype=np.int64)
    written = (found["size"] > 0) & (found["size"] < PRE_BLANK)
    found, offsets = found[written], offsets[written]
    arrays = [
        repeated(split.topic, len(found)),
        pa.repeat(pa.scalar(split.queue_id, pa.int32()), len(found)),
        pa.array(offsets),
        pa.array(found["position"].astype(np.int64)),
        pa.array(found["size"].astype(np.int32)),
        pa.array(found["tags_code"].astype(np.int64)),
    ]
    return pa.RecordBatch.from_arrays(
        arrays, schema=arrow_schema(CONSUME_QUEUE_COLUMNS, list(CONSUME_QUEUE_COLUMNS))
    )


class ConsumerOffsetTable:
    """One row for each group, topic and queue with an offset."""

    progress: Progress | None = None

    def __init__(self, root: str) -> None:
        self.schema = arrow_schema(CONSUMER_OFFSET_COLUMNS, list(CONSUMER_OFFSET_COLUMNS))
        self._path = Path(root) / "config" / "consumerOffset.json"

    def check(self) -> None:
        """`OptionError` for a folder that is no store, `CorruptStoreError` for one that cannot be read."""
        consumer_offsets(self._path)

    def batches(self, names: Sequence[str], condition: Any) -> Iterator[Any]:
        rows = [dict(zip(self.schema.names, row, strict=True)) for row in consumer_offsets(self._path)]
        batch = pa.RecordBatch.from_pylist(rows, schema=self.schema)
        yield (batch if condition is None else batch.filter(condition)).select(list(names))
