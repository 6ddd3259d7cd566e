"""Jobs on DuckDB, in this process: tables are read as Arrow while a query runs, so nothing is copied to a disk first.

DuckDB asks each table for the columns and rows that a query needs. What does not fit into memory goes to a temporary
folder.
"""

import contextlib
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from ...errors import OptionError, PipelineError
from ...tables.arrow.call_options import snake
from ...tables.arrow.readers import (
    CONSUMER_OFFSETS,
    MESSAGES,
    Table,
    dataset_of,
    journal_table,
    store_table,
    topic_table,
)
from ...tables.arrow.tasks import Progress
from .arrow_frame import ArrowFrame
from .engine import SQL
from .message_input import MessageInput

Seen = Callable[[int], object]
"""Called with the number of rows of each batch that is read."""
MACROS: Final = (
    "create macro startswith(t, prefix) as starts_with(t, prefix)",
    "create macro unix_micros(moment) as epoch_us(moment)",
    "create macro array_join(list, separator) as array_to_string(list, separator)",
    "create macro percentile_approx(number, share) as quantile_disc(number, share)",
    # Two digits for each byte, and a match begins at a byte: DuckDB does not search in blobs.
    "create macro has_bytes(bytes, t) as regexp_matches(hex(bytes), concat('^(..)*', hex(encode(t))))",
    "create macro unhex_text(digits) as decode(unhex(digits))",
    "create macro text_of(bytes) as try(decode(bytes))",
    "create macro timestamp_millis(epoch) as to_timestamp(epoch / 1000)",
)
"""What Spark has by itself, or as one of `FUNCTIONS` of `spark_engine.py`."""
ON_DISK: Final = "/var/tmp"
_TRUTH: Final = {"true": True, "false": False}


class DuckEngine:
    """One DuckDB connection with its tables. Use as a context manager: it removes its temporary folder."""

    def __init__(
        self, *, memory: str | None = None, seen: Seen | None = None, progress: Progress | None = None
    ) -> None:
        import duckdb

        self._errors = duckdb.Error
        self._spill = tempfile.mkdtemp(prefix="pocketmq-duckdb-", dir=_spill_parent())
        self._connection = duckdb.connect(":memory:")
        self._seen = seen
        self._progress = progress
        self._failure: Exception | None = None
        self._tables: dict[str, Any] = {}
        settings = {"temp_directory": self._spill, "TimeZone": "UTC"}
        if memory is not None:
            settings["memory_limit"] = f"{memory[:-1]}{memory[-1].upper()}iB"  # 512m is 512MiB there
        for key, value in settings.items():
            self._connection.execute(f"set {key} = '{value}'")
        for macro in MACROS:
            self._connection.execute(macro)

    def __enter__(self) -> "DuckEngine":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        shutil.rmtree(self._spill, ignore_errors=True)

    # -- tables

    def open_messages(self, name: str, source: MessageInput, columns: Sequence[str], **options: str) -> None:
        """DuckDB names the columns itself, for each query."""
        if source.folders:
            self._register(name, _store_table(source, **_store_options(options)))
            return
        assert source.namesrv_addr is not None
        self._register(
            name,
            topic_table(
                source.namesrv_addr,
                source.topics or "",
                since=source.since_ms,
                until=source.until_ms,
                access=source.access,
                **options,
            ),
        )

    def open_store_table(self, name: str, source: MessageInput, table: str, **options: str) -> None:
        self._register(name, _store_table(source, table=table, **_store_options(options)))

    def open_journal(self, name: str, path: str) -> None:
        self._register(name, journal_table(path))

    def _register(self, name: str, table: Table) -> None:
        table.progress = self._progress
        dataset = self._tables[name] = dataset_of(_WatchedTable(table, self))
        self._connection.register(name, dataset)

    # -- queries

    def sql(self, text: str) -> ArrowFrame:
        return ArrowFrame(lambda: self._rows(text))

    def keep(self, name: str, text: str, *, is_small: bool = False) -> None:
        self._run(f"create or replace temp table {name} as {text}")

    def _rows(self, text: str) -> Any:
        rows = self._run(text)
        if rows is None or not self._is_query(text):
            raise OptionError(
                SQL, ": the text must be a query that has rows, such as select topic from messages"
            )
        return rows

    def _is_query(self, text: str) -> bool:
        """Whether the last statement of a text that DuckDB can run has rows, and does nothing else."""
        kinds = self._connection.extract_statements(text)[-1].expected_result_type
        return [kind.name for kind in kinds] == ["QUERY_RESULT"]

    def _run(self, text: str) -> Any:
        """The rows as an Arrow table; None for a text that has none.

        `OptionError` with DuckDB's words for a text that it cannot run; an error of a table as it was raised.
        """
        self._failure = None
        try:
            with keyboard_interrupt_wins():
                found = self._connection.sql(text)
                return None if found is None else _with_longs(found.to_arrow_table())
        except self._errors as error:
            if self._failure is not None:
                raise self._failure from error
            raise OptionError(SQL, f": {' '.join(str(error).split())}") from error


class _WatchedTable:
    """A table whose batches are counted and whose errors are kept: DuckDB turns them into texts."""

    progress: Progress | None = None

    def __init__(self, table: Table, engine: DuckEngine) -> None:
        self.schema = table.schema
        self._table = table
        self._engine = engine

    def batches(self, names: Sequence[str], condition: Any) -> Iterator[Any]:
        engine = self._engine
        try:
            for batch in self._table.batches(names, condition):
                if engine._seen is not None:
                    engine._seen(batch.num_rows)
                yield batch
        except (PipelineError, OSError) as error:  # also of the call, which plans the read
            engine._failure = error
            raise


@contextlib.contextmanager
def keyboard_interrupt_wins() -> Iterator[None]:
    """Raise `KeyboardInterrupt` after a Ctrl-C, whatever DuckDB makes of it.

    It may arrive in DuckDB, in Arrow, or in a table that they read, and each of them has another error for it.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def interrupt(number: int, _: object) -> None:
        arrived.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except BaseException as error:
        if arrived:
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, before)
    if arrived:
        raise KeyboardInterrupt


def _store_table(source: MessageInput, *, table: str = MESSAGES, **options: Any) -> Table:
    """A table of the source's store. Its files are checked when a query reads them: it may need another table only."""
    topics = None if table == CONSUMER_OFFSETS else source.topics
    return store_table(
        dict(source.stores) or source.store or "", topics=topics, table=table, checks_files=False, **options
    )


def _store_options(options: dict[str, str]) -> dict[str, Any]:
    """Options of the format `rocketmq-store` as those of `open_store`."""
    return {snake(key): _TRUTH.get(value, value) for key, value in options.items()}


def _with_longs(rows: Any) -> Any:
    """The rows with bigints as in Spark, where DuckDB's sum of integers has 128 bits, and fits."""
    for at, field in enumerate(rows.schema):
        if pa.types.is_decimal128(field.type) and field.type.scale == 0:
            with contextlib.suppress(pa.ArrowInvalid):
                rows = rows.set_column(at, field.name, rows.column(at).cast(pa.int64()))
    return rows


def _spill_parent() -> str:
    """Where what does not fit into memory is written: `TMPDIR`, else a folder on a disk, which `/tmp` often is not."""
    is_chosen = any(name in os.environ for name in ("TMPDIR", "TEMP", "TMP"))
    return ON_DISK if not is_chosen and os.access(ON_DISK, os.W_OK) else tempfile.gettempdir()
