"""The reader of a stream by itself, without a JVM."""

from typing import Any

from pocketmq.pipeline.spark.sources.topic_stream import TopicStreamReader
from pocketmq.pipeline.tables.planning.topic_options import read_source_options
from pyspark.sql.types import LongType, StructField, StructType

OFFSETS = StructType([StructField("queueOffset", LongType())])


def stream_of(server: Any, topic: str | None = None, **options: str) -> TopicStreamReader:
    """Of a server or cluster; from the first message on, unless the options say otherwise."""
    texts = {"nameServer": server.namesrv_addr, "startingOffsets": "earliest"}
    texts |= {"subscribe": topic} if topic is not None else {}
    return TopicStreamReader(read_source_options({**texts, **options}, is_stream=True), OFFSETS)
