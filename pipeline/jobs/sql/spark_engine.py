"""Jobs on Spark: the same tables as views of the formats `rocketmq`, `rocketmq-store` and `pocketmq-journal`."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...errors import OptionError
from ...tables.files.locations import absolute
from ...tables.records.columns import STORE_COLUMNS
from .engine import SQL
from .message_input import MessageInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


FUNCTIONS: Final = (
    "create or replace temporary function has_bytes(bytes binary, t string) returns boolean "
    "return contains(bytes, cast(t as binary))",
    "create or replace temporary function unhex_text(digits string) returns string "
    "return cast(unhex(digits) as string)",
    "create or replace temporary function text_of(bytes binary) returns string "
    "return case when is_valid_utf8(cast(bytes as string)) then cast(bytes as string) end",
)
"""`text_of` is null if it is no UTF-8. DuckDB has them among `MACROS` of `duckdb_engine.py`."""
KEPT_HERE: Final = 20_000
"""Rows of a small table that are kept in this process: questions about them start no tasks that read a cache."""


class SparkFrame:
    """The rows of a data frame."""

    def __init__(self, frame: "DataFrame") -> None:
        self.frame = frame

    def rows(self, most: int | None = None) -> list[dict[str, Any]]:
        found = self.frame if most is None else self.frame.limit(most)
        return [row.asDict(recursive=True) for row in found.collect()]

    def each(self) -> Iterator[dict[str, Any]]:
        return (row.asDict(recursive=True) for row in self.frame.toLocalIterator())

    def count(self) -> int:
        return self.frame.count()

    def write(self, folder: str, mode: str) -> None:
        self.frame.write.mode(mode).parquet(folder)


class SparkEngine:
    """A Spark session with its views. Use as a context manager: it frees the rows that it keeps, which a Spark Connect
    server would keep for ever."""

    def __init__(self, spark: "SparkSession") -> None:
        self.spark = spark
        self._cached: list[DataFrame] = []
        for function in FUNCTIONS:
            spark.sql(function)

    def __enter__(self) -> "SparkEngine":
        return self

    def __exit__(self, *_: object) -> None:
        while self._cached:
            self._cached.pop().unpersist()

    def open_messages(self, name: str, source: MessageInput, columns: Sequence[str], **options: str) -> None:
        """Spark prunes no columns of Python sources, so only `columns` are decoded."""
        reader = self.spark.read.format(source.format).options(**source.reader_options())
        schema = ", ".join(f"{column} {STORE_COLUMNS[column][0]}" for column in columns)
        reader.schema(schema).options(**options).load().createOrReplaceTempView(name)

    def open_store_table(self, name: str, source: MessageInput, table: str, **options: str) -> None:
        reader = self.spark.read.format(source.format).options(**source.reader_options(), table=table)
        reader.options(**options).load().createOrReplaceTempView(name)

    def open_journal(self, name: str, path: str) -> None:
        self.spark.read.format("pocketmq-journal").load(absolute(path)).createOrReplaceTempView(name)

    def sql(self, text: str) -> SparkFrame:
        """`OptionError` with Spark's words for a text that it cannot read."""
        from pyspark.errors import AnalysisException, ParseException

        try:
            return SparkFrame(self.spark.sql(text))
        except (AnalysisException, ParseException) as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise OptionError(SQL, f": {lines[0] if lines else error}") from error

    def keep(self, name: str, text: str, *, is_small: bool = False) -> None:
        rows = self.sql(text).frame
        cached = rows.cache()
        self._cached.append(cached)
        few = cached.limit(KEPT_HERE + 1).toArrow() if is_small else None
        if few is not None and few.num_rows <= KEPT_HERE:
            cached = self.spark.createDataFrame(few, schema=rows.schema)
            self._cached.pop().unpersist()
        cached.createOrReplaceTempView(name)
