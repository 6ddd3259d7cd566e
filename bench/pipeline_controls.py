"""Controls for `bench.pipeline`: Python sources that do no work of their own, so that only Spark is measured.

bench-same       one decoded batch of a store, repeated     for a scan or a topic read, which decode each batch
bench-discard    a writer that drops its batches            for the sink, which sends them
bench-steps      a stream of numbers, four tasks a batch    for a stream that pulls
bench-one        one row                                    for the first rows of a topic
"""

from collections.abc import Iterator
from typing import Any

from pocketmq.pipeline.spark.sources.default_columns import default_columns
from pocketmq.pipeline.spark.sources.store_source import StoreSource
from pocketmq.pipeline.tables.planning.option_values import plain_options
from pocketmq.pipeline.tables.records.columns import STORE_COLUMNS, ddl
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

TASKS = 4


class SameBatches(DataSource):
    """`rows` rows of columns that are decoded once."""

    @classmethod
    def name(cls) -> str:
        return "bench-same"

    def schema(self) -> str:
        return ddl(default_columns(plain_options(self.options), STORE_COLUMNS))

    def reader(self, schema: StructType) -> DataSourceReader:
        return _SameReader({str(key): str(value) for key, value in self.options.items()}, schema)


class _SameReader(DataSourceReader):
    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._path = options["path"]
        self._rows = int(options["rows"])
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(0), InputPartition(1)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        store = StoreSource({"path": self._path}).reader(self._schema)
        batch = next(store.read(store.partitions()[0]))
        for _ in range(self._rows // 2 // batch.num_rows):
            yield batch


class Discard(DataSource):
    """Rows that end in the Python workers."""

    @classmethod
    def name(cls) -> str:
        return "bench-discard"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return _DiscardWriter()


class _DiscardWriter(DataSourceArrowWriter):
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


class Steps(DataSource):
    """A stream of numbers."""

    @classmethod
    def name(cls) -> str:
        return "bench-steps"

    def schema(self) -> str:
        return "number bigint"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _StepReader()


class _StepReader(DataSourceStreamReader):
    def initialOffset(self) -> dict[str, int]:
        return {"next": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        return {"next": start["next"] + TASKS}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(number) for number in range(start["next"], end["next"])]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield (partition.value,)

    def commit(self, end: dict[str, int]) -> None:
        pass


class One(DataSource):
    """One row."""

    @classmethod
    def name(cls) -> str:
        return "bench-one"

    def schema(self) -> str:
        return "number bigint"

    def reader(self, schema: StructType) -> DataSourceReader:
        return _OneReader()


class _OneReader(DataSourceReader):
    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield (1,)
