"""`open_store`, `open_topic` and `open_journal`: each a `pyarrow.RecordBatchReader`; and the same as datasets.

A reader is read once, from its beginning to its end. A dataset can be asked again and again, and an engine that knows
Arrow datasets (DuckDB, Polars) tells it which columns and rows it needs.
"""

import functools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa

from ...errors import OptionError
from ..files.locations import is_url
from ..files.store_topics import missing_topics
from ..records.columns import (
    ALL,
    CONSUME_QUEUE_COLUMNS,
    CONSUMER_OFFSET_COLUMNS,
    LEAN_COLUMNS,
    RUN_COLUMNS,
    STATISTIC_COLUMNS,
    STORE_COLUMNS,
    arrow_schema,
)
from .call_options import TOPIC_OPTIONS, check_names, check_store_options, in_words_of_call
from .conditions import Moment, condition_of, timestamp
from .tasks import Progress, SharedTable, Task, TaskTable, joined

_log = logging.getLogger("pocketmq.pipeline")

MESSAGES, CONSUME_QUEUE, CONSUMER_OFFSETS = "messages", "consumequeue", "consumerOffsets"
RUNS, STATISTICS = "runs", "stats"
STORE_TABLES: Final = {
    MESSAGES: STORE_COLUMNS,
    RUNS: RUN_COLUMNS,
    STATISTICS: STATISTIC_COLUMNS,
    CONSUME_QUEUE: CONSUME_QUEUE_COLUMNS,
    CONSUMER_OFFSETS: CONSUMER_OFFSET_COLUMNS,
}
"""The tables of a store, and their columns."""
Columns = Sequence[str] | str | None


class Table(Protocol):
    """What can be opened: its columns, and its rows for some columns and a condition. A large one calls `progress`
    while it is read."""

    schema: Any
    progress: Progress | None

    def batches(self, names: Sequence[str], condition: Any) -> Iterator[Any]: ...


def open_store(
    path: str | Path | Mapping[str, str],
    *,
    columns: Columns = None,
    filters: Any = None,
    topics: Sequence[str] | str | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    table: str = MESSAGES,
    threads: int | None = None,
    **options: Any,
) -> Any:
    """The rows of a store directory, ours or an official broker's, as a `pyarrow.RecordBatchReader`.

    `path` is a store, or `{broker name: store}` for the stores of several brokers; a store is a folder, or a URL
    such as s3://bucket/store (what it holds when it is first read; without `commit_log_path` and `check_queues`).
    `table` is messages, runs, stats, consumequeue or consumerOffsets. `columns` names columns, or is "all"; without
    it messages have the eleven lean ones. `filters` is a `pyarrow.compute` expression or a list such as `[("tags",
    "=", "paid")]`. `topics` and the store times `since <= storeTimestamp < until` limit what is read. `threads` is
    how many threads read; without it one for each core. Rows are in the order of the log. Other options:
    `on_corrupt` (fail, skip, report), `verify_crc`, `decompress`, `broker_name`, `commit_log_path`, and
    `check_queues` for runs. `OptionError` for what is wrong in a call; `CorruptStoreError` while reading.
    """
    source = store_table(path, topics=topics, table=table, threads=threads, **options)
    return reader_of(source, columns, condition_of(source.schema, filters, since, until))


def store_dataset(
    path: str | Path | Mapping[str, str],
    *,
    topics: Sequence[str] | str | None = None,
    table: str = MESSAGES,
    threads: int | None = None,
    **options: Any,
) -> Any:
    """The same as a `pyarrow.dataset.Dataset`: DuckDB and Polars ask it for the columns and rows of a query."""
    return dataset_of(store_table(path, topics=topics, table=table, threads=threads, **options))


def open_topic(
    namesrv_addr: str,
    topics: Sequence[str] | str,
    *,
    columns: Columns = None,
    filters: Any = None,
    since: Moment | None = None,
    until: Moment | None = None,
    **options: Any,
) -> Any:
    """The messages of topics of running brokers, as a `pyarrow.RecordBatchReader`.

    What is read is fixed by this call: from each queue's first message (or `since`) to its end at this moment (or
    `until`, a store time). `columns` and `filters` are as in `open_store`. `tags` ("paid || open") and `sql92` let the
    brokers filter; `access` has keys and TLS; other options are those of the source `rocketmq` in snake case
    (`group_id`, `pull_batch_size`, `fail_on_data_loss`, ...). Rows are queue by queue, in the order of each queue.
    `OptionError` for what is wrong in a call, `SourceUnreachable` without brokers, `DataLossError` while reading.
    """
    source = topic_table(namesrv_addr, topics, since=since, until=until, **options)
    return reader_of(source, columns, condition_of(source.schema, filters, since, until))


def topic_dataset(namesrv_addr: str, topics: Sequence[str] | str, **options: Any) -> Any:
    """The same as a `pyarrow.dataset.Dataset`; every scan reads to the ends of the queues at its own moment."""
    return dataset_of(topic_table(namesrv_addr, topics, **options))


def open_journal(
    path: str | Path | Sequence[str],
    *,
    columns: Columns = None,
    filters: Any = None,
    threads: int | None = None,
) -> Any:
    """The entries of a journal (`serve --journal DIR`), as a `pyarrow.RecordBatchReader`. `path` is a folder, a file or
    a list of them. `columns`, `filters` and `threads` are as in `open_store`."""
    source = journal_table(path, threads)
    return reader_of(source, columns, condition_of(source.schema, filters))


def journal_dataset(path: str | Path | Sequence[str], *, threads: int | None = None) -> Any:
    """The same as a `pyarrow.dataset.Dataset`."""
    return dataset_of(journal_table(path, threads))


# -- tables


def store_table(
    path: str | Path | Mapping[str, str],
    *,
    topics: Sequence[str] | str | None = None,
    table: str = MESSAGES,
    threads: int | None = None,
    checks_files: bool = True,
    **options: Any,
) -> Table:
    """One table of a store. `OptionError` for an option that is not allowed, and for a folder that is no store; the
    latter while reading, unless `checks_files`. A topic that the store does not have is a warning."""
    from .store_table import topic_names

    if table in (MESSAGES, RUNS, STATISTICS):
        check_store_options(options, checks_queues=table == RUNS)
    elif table in STORE_TABLES and options:
        raise OptionError(f"table {table}", f"has no option {', '.join(options)}")
    planned = task_table(path, table, topics=topics, **options)
    found = SharedTable(planned, threads)
    if checks_files:
        with in_words_of_call():
            planned.tasks(None)
        places = [str(place) for place in path.values()] if isinstance(path, Mapping) else [str(path)]
        for sentence in missing_topics(places, [] if topics is None else topic_names(topics)):
            _log.warning("%s; what a deleted topic has left is read", sentence)
    return found


def task_table(
    path: str | Path | Mapping[str, str], table: str, *, cut: Any = None, **options: Any
) -> TaskTable:
    """One table of a store, or of the stores of several brokers, planned as tasks: what threads and Spark read.

    A store is a folder or a URL. `cut` is a `Cut` of `store_table.py`.
    """
    if table not in STORE_TABLES:
        raise OptionError("table", f"must be one of {', '.join(STORE_TABLES)}, got {table!r}")
    if not isinstance(path, Mapping):
        return _table_of(str(path), table, cut, options)
    if table != MESSAGES:
        raise OptionError(f"table {table}", "is of one store: path must be a folder or a URL")
    if options.pop("broker_name", None) is not None or not path:
        raise OptionError("path", "must be a folder, or {broker name: folder} without broker_name")
    return joined(
        [_table_of(str(place), table, cut, {**options, "broker_name": name}) for name, place in path.items()]
    )


def _table_of(
    path: str, table: str, cut: Any, options: dict[str, Any], *, url: str | None = None
) -> TaskTable:
    """With `url` the log is that of the store behind it, and `path` has copies of its queues and offsets."""
    from .other_tables import CUT, plan_offsets, plan_runs, plan_statistics, plan_units
    from .store_table import Cut, plan_messages, store_settings, topic_names

    if is_url(path):
        from .remote_store import RemoteStore

        for name in ("commit_log_path", "check_queues"):
            if options.get(name):
                raise OptionError(name, "is for a folder: a URL is read without it")

        # Tasks that read from elsewhere are larger.
        of_folder = functools.partial(_table_of, table=table, cut=cut or CUT, options=options, url=path)
        return TaskTable(of_folder("").schema, RemoteStore(path, of_folder).tasks)
    plan: Callable[[Any], Sequence[Task]]
    if table == CONSUME_QUEUE:
        plan = functools.partial(plan_units, path, frozenset(topic_names(options.get("topics"))), url)
    elif table == CONSUMER_OFFSETS:
        plan = functools.partial(plan_offsets, path, url)
    else:
        checks_queues = options.get("check_queues", False)
        own = {name: value for name, value in options.items() if name != "check_queues"}
        settings = store_settings(path, **(own if url is None else {**own, "commit_log_path": url}))
        if table == MESSAGES:
            plan = functools.partial(plan_messages, settings, cut or Cut())
        elif table == RUNS:
            plan = functools.partial(plan_runs, settings, cut or CUT, checks_queues)
        else:
            plan = functools.partial(plan_statistics, settings, cut or CUT)
    return TaskTable(arrow_schema(STORE_TABLES[table]), plan)


def topic_table(
    namesrv_addr: str,
    topics: Sequence[str] | str,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    tags: str | None = None,
    sql92: str | None = None,
    access: Any = None,
    **options: Any,
) -> Table:
    """The table of topics. `OptionError` for an option that is not allowed."""
    from ..planning.topic_options import read_source_options
    from .store_table import topic_names
    from .topic_table import TopicTable, between_times

    check_names(options, TOPIC_OPTIONS)
    texts = {
        TOPIC_OPTIONS[name]: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
    }
    texts |= {"nameServer": namesrv_addr, "subscribe": ",".join(topic_names(topics))}
    if tags is not None and sql92 is not None:
        raise OptionError("tags and sql92", ": set one of them")
    if tags is not None or sql92 is not None:
        texts |= {"subExpression": tags or sql92 or "", "filterType": "TAG" if sql92 is None else "SQL92"}
    with in_words_of_call():
        chosen = read_source_options(texts, is_stream=False)
    if access is not None:
        import msgspec

        chosen = msgspec.structs.replace(chosen, access=access)
    return TopicTable(between_times(chosen, _ms("since", since), _ms("until", until)))


def journal_table(path: str | Path | Sequence[str], threads: int | None = None) -> Table:
    """The table of journals. `OptionError` for a path without one."""
    from . import journal_table as journals

    paths = [str(path)] if isinstance(path, str | Path) else [str(each) for each in path]
    planned = journals.journal_table(paths)
    found = SharedTable(planned, threads)
    with in_words_of_call():
        planned.tasks(None)
    return found


def _ms(option: str, moment: Moment | None) -> int | None:
    return None if moment is None else int(timestamp(option, moment).value // 1000)


# -- readers


def column_names(columns: Columns, schema: Any) -> list[str]:
    """The named columns; the lean ones of messages if none is named. `OptionError` for an unknown one, or one twice."""
    if columns is None and set(LEAN_COLUMNS) <= set(schema.names):
        return [name for name in schema.names if name in LEAN_COLUMNS]
    if columns is None or columns == ALL:
        return list(schema.names)
    if not isinstance(columns, str | Sequence) or not all(isinstance(name, str) for name in columns):
        raise OptionError("columns", f"must be names, as a list or a text with commas, got {columns!r}")
    names = [part.strip() for part in columns.split(",")] if isinstance(columns, str) else list(columns)
    for name in names:
        if name not in schema.names:
            raise OptionError(f"unknown column {name}", f"; the columns are {', '.join(schema.names)}")
    if len(set(names)) < len(names) or not names:
        raise OptionError(
            "columns", f"must name each column once, and at least one, got {', '.join(names)!r}"
        )
    return names


def reader_of(table: Table, columns: Columns, condition: Any) -> Any:
    """A reader of some columns of a table."""
    names = column_names(columns, table.schema)
    schema = pa.schema([table.schema.field(name) for name in names])
    return pa.RecordBatchReader.from_batches(schema, table.batches(names, condition))


def dataset_of(table: Table) -> Any:
    """A dataset of a table."""
    from .dataset import TableDataset

    return TableDataset(table)
