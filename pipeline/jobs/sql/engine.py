"""What a job asks of an engine, and which engine runs it: DuckDB in this process, or Spark.

A job's questions are one SQL text for both, in the words that both know, and with functions that each engine makes.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Final, Protocol

from ...errors import OptionError, PipelineError
from .message_input import MessageInput

DUCKDB, SPARK = "duckdb", "spark"
ENGINES: Final = (DUCKDB, SPARK)
SQL: Final = "SQL"
"""What is wrong if an engine cannot run a text."""


class Frame(Protocol):
    """The rows of a query, which may be too many to hold. A row is a dict of plain values."""

    def rows(self, most: int | None = None) -> list[dict[str, Any]]:
        """The first rows, or all."""

    def each(self) -> Iterator[dict[str, Any]]:
        """The rows, of which few are held at once."""

    def count(self) -> int: ...

    def write(self, folder: str, mode: str) -> None:
        """Write them as Parquet; `mode` is one of `report/output_folders.py`."""


class Engine(Protocol):
    """Runs SQL over tables that it opens."""

    def open_messages(self, name: str, source: MessageInput, columns: Sequence[str], **options: str) -> None:
        """Make the messages of a source a table. `columns` are those that the queries use; `options` are those of the
        formats `rocketmq` and `rocketmq-store`."""

    def open_store_table(self, name: str, source: MessageInput, table: str, **options: str) -> None:
        """Make another table of a store a table: `runs`, `stats`, `consumequeue` or `consumerOffsets`."""

    def open_journal(self, name: str, path: str) -> None:
        """Make a journal a table."""

    def sql(self, text: str) -> Frame:
        """The rows of a query."""

    def keep(self, name: str, text: str, *, is_small: bool = False) -> None:
        """Make the rows of a query a table, computed once. `is_small` says that rows are short and usually few."""


def choose_engine(wanted: str | None, *, is_spark: bool) -> str:
    """The engine of a job: as wanted, else Spark if the user set something of Spark, else DuckDB.

    Without a wish, what is installed decides too. `PipelineError` if the engine is not installed.
    """
    if wanted == DUCKDB and is_spark:
        raise OptionError("--master and --conf", "are for --engine spark")
    chosen = wanted or (SPARK if is_spark else DUCKDB)
    has = {DUCKDB: _has("duckdb"), SPARK: _has("pyspark")}
    if wanted is None and not is_spark and not has[chosen]:
        chosen = SPARK if chosen == DUCKDB and has[SPARK] else DUCKDB
    if not has[chosen] or not (_has("pyarrow") and _has("numpy")):
        extra = "tables" if chosen == DUCKDB else "spark"
        raise PipelineError(f"--engine {chosen} needs its extra: pip install 'pocketmq[{extra}]'")
    return chosen


@contextmanager
def naming(text: str) -> Iterator[None]:
    """Name the user's text in an error about the SQL that was made of it."""
    try:
        yield
    except OptionError as error:
        if text and error.option == SQL:
            raise error.named(f"{text}: {SQL}") from error
        raise


def check_arrow() -> None:
    """`PipelineError` without numpy and pyarrow, which also jobs without an engine need."""
    if not (_has("pyarrow") and _has("numpy")):
        raise PipelineError("this job needs its extra: pip install 'pocketmq[tables]'")


def _has(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # set to None in sys.modules
        return False
