"""The small tables of a store: the units of its consume queues, and the offsets of its consumer groups."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ..errors import PathError
from ..files.consume_queues import QueueSplit, consumer_offsets, queue_splits
from ..files.store_rows import consumer_offset_rows, unit_rows
from ..records.columns import CONSUME_QUEUE_COLUMNS, CONSUMER_OFFSET_COLUMNS, arrow_schema

UNIT_ROWS: Final = 4_000_000
"""Units of a task: 80 MB."""


class UnitRowsTask(msgspec.Struct, frozen=True):
    """Units of a queue, as rows."""

    split: QueueSplit

    def batches(self, names: Sequence[str], condition: Any) -> Iterator[Any]:
        for batch in unit_rows(self.split):
            yield (batch if condition is None else batch.filter(condition)).select(list(names))


class OffsetsTask(msgspec.Struct, frozen=True):
    """The rows of an offset table, which are few."""

    rows: list[tuple[str, str, int, int]]

    def batches(self, names: Sequence[str], condition: Any) -> Iterator[Any]:
        batch = consumer_offset_rows(self.rows)
        yield (batch if condition is None else batch.filter(condition)).select(list(names))


class ConsumeQueueTable:
    """One row for each written unit of the consume queues. With `url` the folder has copies of the queues of that
    store, for planning."""

    def __init__(self, root: str, topics: frozenset[str] = frozenset(), url: str | None = None) -> None:
        self.schema = arrow_schema(CONSUME_QUEUE_COLUMNS, list(CONSUME_QUEUE_COLUMNS))
        self._root = Path(root) / "consumequeue"
        self._topics = topics
        self._url = url

    def check(self) -> None:
        """`PathError` for a store without consume queues."""
        if not self._root.is_dir():
            raise PathError(f"{self._root} is not a folder; table consumequeue needs the consume queues")

    def tasks(self, condition: Any) -> list[UnitRowsTask]:
        self.check()
        splits = queue_splits(self._root, self._topics, UNIT_ROWS)
        return [UnitRowsTask(msgspec.structs.replace(split, url=self._url)) for split in splits]


class ConsumerOffsetTable:
    """One row for each group, topic and queue with an offset."""

    def __init__(self, root: str) -> None:
        self.schema = arrow_schema(CONSUMER_OFFSET_COLUMNS, list(CONSUMER_OFFSET_COLUMNS))
        self._path = Path(root) / "config" / "consumerOffset.json"

    def check(self) -> None:
        """`OptionError` for a folder that is no store, `CorruptStoreError` for one that cannot be read."""
        consumer_offsets(self._path)

    def tasks(self, condition: Any) -> list[OffsetsTask]:
        return [OffsetsTask(consumer_offsets(self._path))]
