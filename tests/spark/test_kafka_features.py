"""What users of Spark's Kafka connector expect, where no other test shows it. The table: docs/pipeline-practice.md."""

from typing import Any

import pytest
from pocketmq.testing import RocketMQ

from spark.conftest import ADDRESS, Reads

pytest.importorskip("pyspark")

import pyarrow as pa
from pocketmq.pipeline.errors import OptionError
from pocketmq.pipeline.spark.sink.sink_options import read_sink_options
from pocketmq.pipeline.spark.sink.task_sender import TaskSender
from pocketmq.pipeline.spark.sources.topic_reader import TopicReader
from pocketmq.pipeline.tables.brokers.batch_sender import BatchSender
from pocketmq.pipeline.tables.brokers.broker_client import BrokerClient
from pocketmq.pipeline.tables.planning.topic_options import read_source_options
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from spark.stream_readers import stream_of

ALL = ReadAllAvailable()


def offsets(position: dict[str, Any], name: str) -> dict[str, dict[str, dict[str, int]]]:
    found: dict[str, dict[str, dict[str, int]]] = position.get(name, {})
    return found


def test_a_topic_that_a_pattern_matches_later_is_read_from_its_first_message(rocketmq: RocketMQ) -> None:
    first = rocketmq.topic("mail-a", queues=1)
    prefix = first.removesuffix("mail-a")
    rocketmq.send(first, "x")
    stream = stream_of(rocketmq, subscribePattern=f"{prefix}mail-.*", startingOffsets="latest")
    start = stream.initialOffset()
    second = rocketmq.topic("mail-b", queues=1)
    for _ in range(2):
        rocketmq.send(second, "y")
    end = stream.latestOffset(start, ALL)
    assert offsets(end, "topics") == {first: {"broker-a": {"0": 1}}, second: {"broker-a": {"0": 2}}}
    assert offsets(end, "from")[second] == {"broker-a": {"0": 0}}, "a repeated batch begins there too"
    assert sum(batch.num_rows for task in stream.partitions(start, end) for batch in stream.read(task)) == 2


@pytest.mark.parametrize(
    ("options", "tasks"),
    [({}, 1), ({"minPartitions": "5"}, 5), ({"maxRecordsPerPartition": "3"}, 4)],
)
def test_a_batch_of_a_stream_is_split_into_tasks(
    rocketmq: RocketMQ, options: dict[str, str], tasks: int
) -> None:
    topic = rocketmq.topic("split", queues=1)
    for _ in range(10):
        rocketmq.send(topic, "x")
    stream = stream_of(rocketmq, topic, **options)
    start = stream.initialOffset()
    parts = stream.partitions(start, stream.latestOffset(start, ALL))
    assert len(parts) == tasks
    read = [offset for part in parts for batch in stream.read(part) for (offset,) in rows_of(batch)]
    assert read == list(range(10))


def rows_of(batch: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def test_the_newest_offsets_are_reported_with_the_progress(rocketmq: RocketMQ) -> None:
    topic = rocketmq.topic("newest", queues=1)
    stream = stream_of(rocketmq, topic, maxOffsetsPerTrigger="2")
    start = stream.initialOffset()
    for _ in range(5):
        rocketmq.send(topic, "x")
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    latest = stream.reportLatestOffset()
    assert latest is not None
    assert offsets(end, "topics")[topic] == {"broker-a": {"0": 2}}
    assert offsets(latest, "topics")[topic] == {"broker-a": {"0": 5}}


def test_a_message_without_keys_and_tags_has_nulls(rocketmq: RocketMQ) -> None:
    topic = rocketmq.topic("bare", queues=1)
    rocketmq.send(topic, "x")
    texts = {"nameServer": rocketmq.namesrv_addr, "subscribe": topic}
    types = {"keys": StringType(), "tags": StringType(), "body": BinaryType(), "queueOffset": LongType()}
    schema = StructType([StructField(name, kind) for name, kind in types.items()])
    reader = TopicReader(read_source_options(texts, is_stream=False), schema)
    (batch,) = (batch for task in reader.partitions() for batch in reader.read(task))
    assert batch.to_pylist() == [{"keys": None, "tags": None, "body": b"x", "queueOffset": 0}]


def send(rocketmq: RocketMQ, batch: dict[str, Any], **options: str) -> None:
    chosen = read_sink_options({"nameServer": rocketmq.namesrv_addr, **options})
    with BrokerClient(rocketmq.namesrv_addr).closing() as client:
        sender = BatchSender(client, group="g", in_flight=1, timeout_ms=10_000, retry_timeout_ms=5_000)
        TaskSender(sender, chosen, "w").send(pa.RecordBatch.from_pydict(batch))
        sender.finish()


def test_the_option_topic_wins_over_the_column_and_a_row_needs_one_of_them(rocketmq: RocketMQ) -> None:
    wanted, named = rocketmq.topic("wanted", queues=1), rocketmq.topic("named", queues=1)
    send(rocketmq, {"body": [b"a", b"b"], "topic": [named, None]}, topic=wanted)
    assert [one.text for one in rocketmq.messages(wanted)] == ["a", "b"]
    assert rocketmq.messages(named) == []
    with pytest.raises(OptionError, match="column topic is null or empty in a row"):
        send(rocketmq, {"body": [b"a", b"b"], "topic": [named, None]})


def test_a_row_without_a_queue_goes_to_any_queue(rocketmq: RocketMQ) -> None:
    topic = rocketmq.topic("any", queues=2)
    queues = pa.array([None, 1, None, 1], pa.int32())
    send(rocketmq, {"body": [b"a", b"b", b"c", b"d"], "queueId": queues}, topic=topic)
    messages = rocketmq.messages(topic)
    assert sorted(one.text for one in messages) == ["a", "b", "c", "d"]
    assert {one.queue_id for one in messages if one.text in ("b", "d")} == {1}


def test_a_row_without_keys_is_a_message_without_keys(rocketmq: RocketMQ) -> None:
    topic = rocketmq.topic("keyless", queues=1)
    send(rocketmq, {"body": [b"a", b"b"], "keys": [None, "k"]}, topic=topic)
    assert [one.keys for one in rocketmq.messages(topic)] == [[], ["k"]]


def test_a_batch_write_names_the_mode_append(spark: SparkSession, rocketmq: RocketMQ) -> None:
    """The Kafka connector also accepts Spark's default mode, which no Python source is asked about."""
    writer = spark.range(1).selectExpr("'x' body").write.format("rocketmq")
    with pytest.raises(Exception, match="Append"):
        writer.option(ADDRESS, rocketmq.namesrv_addr).option("topic", rocketmq.topic("mode")).save()


def test_continuous_mode_is_refused_by_spark(stream: Reads, rocketmq: RocketMQ) -> None:
    topic = rocketmq.topic("continuous", queues=1)
    writer = stream(topic).writeStream.format("noop").trigger(continuous="1 second")
    with pytest.raises(Exception, match=r"(?i)continuous"):
        writer.start().awaitTermination(30)
