"""The small tables of a store: the units of its consume queues, and the offsets of its consumer groups."""

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ..errors import PATH, PathError
from ..files.consume_queues import QueueSplit, consumer_offsets, queue_splits
from ..files.locations import shown_url
from ..files.store_rows import consumer_offset_rows, unit_rows
from ..records.columns import CONSUME_QUEUE_COLUMNS, CONSUMER_OFFSET_COLUMNS, arrow_schema
from .tasks import Task, TaskTable

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


def consume_queue_table(root: str, topics: frozenset[str] = frozenset(), url: str | None = None) -> TaskTable:
    """One row for each written unit of the consume queues. With `url` the folder has copies of the queues of that
    store, for planning. Planning raises `PathError` for a store without consume queues."""
    tasks = functools.partial(_unit_tasks, root, topics, url)
    return TaskTable(arrow_schema(CONSUME_QUEUE_COLUMNS, list(CONSUME_QUEUE_COLUMNS)), tasks)


def _unit_tasks(root: str, topics: frozenset[str], url: str | None, condition: Any) -> list[Task]:
    folder = Path(root) / "consumequeue"
    if not folder.is_dir():
        shown = folder if url is None else f"{shown_url(url)}/consumequeue"
        raise PathError(PATH, f"{shown} is not a folder; table consumequeue needs the consume queues")
    splits = queue_splits(folder, topics, UNIT_ROWS)
    if url is not None:
        splits = [
            msgspec.structs.replace(split, url=url, folder=f"consumequeue/{split.topic}/{split.queue_id}")
            for split in splits
        ]
    return list(map(UnitRowsTask, splits))


def consumer_offset_table(root: str, url: str | None = None) -> TaskTable:
    """One row for each group, topic and queue with an offset. Planning raises `PathError` for a folder that is no
    store, `CorruptStoreError` for a table that cannot be read."""
    tasks = functools.partial(_offset_tasks, root, url)
    return TaskTable(arrow_schema(CONSUMER_OFFSET_COLUMNS, list(CONSUMER_OFFSET_COLUMNS)), tasks)


def _offset_tasks(root: str, url: str | None, condition: Any) -> list[Task]:
    return [OffsetsTask(consumer_offsets(Path(root), shown_url(url or root)))]
