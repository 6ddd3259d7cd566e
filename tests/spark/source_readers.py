"""Sources and the reader of a stream by themselves, without a JVM."""

from typing import Any

from pocketmq.pipeline.spark.sources.topic_stream import TopicStreamReader
from pocketmq.pipeline.tables.planning.topic_options import read_source_options
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

KINDS: dict[str, DataType] = {
    "string": StringType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "binary": BinaryType(),
    "timestamp": TimestampType(),
}


def schema(text: str) -> StructType:
    """Of columns such as `queueId int, body binary`: Spark's own parser is in the JVM."""
    return StructType([StructField(name, KINDS[kind]) for name, kind in map(str.split, text.split(","))])


def rows_of(reader: DataSourceReader) -> list[tuple[Any, ...]]:
    """The rows of all tasks, in their order."""
    batches = [batch for task in reader.partitions() for batch in reader.read(task)]
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def rows(source: type[DataSource], columns: str, **options: str) -> list[tuple[Any, ...]]:
    return rows_of(source(options).reader(schema(columns)))


def stream_of(server: Any, topic: str | None = None, **options: str) -> TopicStreamReader:
    """Of a server or cluster; from the first message on, unless the options say otherwise."""
    texts = {"nameServer": server.namesrv_addr, "startingOffsets": "earliest"}
    texts |= {"subscribe": topic} if topic is not None else {}
    return TopicStreamReader(
        read_source_options({**texts, **options}, is_stream=True), schema("queueOffset bigint")
    )
