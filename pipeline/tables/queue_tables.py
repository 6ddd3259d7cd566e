"""The small tables of a store: the units of its consume queues, and the offsets of its consumer groups."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import PathError
from ..files.consume_queues import consumer_offsets, queue_splits
from ..files.store_rows import consumer_offset_rows, unit_rows
from ..records.columns import CONSUME_QUEUE_COLUMNS, CONSUMER_OFFSET_COLUMNS, arrow_schema
from .processes import Progress


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
            for batch in unit_rows(split):
                yield (batch if condition is None else batch.filter(condition)).select(list(names))


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
        batch = consumer_offset_rows(self._path)
        yield (batch if condition is None else batch.filter(condition)).select(list(names))
