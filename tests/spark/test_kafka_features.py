"""What users of Spark's Kafka connector expect, where no other test shows it. The table: docs/pipeline-practice.md."""

from typing import Any

import pyarrow as pa
import pytest
from pocketmq.pipeline.errors import OptionError
from pocketmq.pipeline.spark.sources.topic_source import RocketMQSource
from pocketmq.testing import RocketMQ
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

from pipeline.brokers.cluster_sends import send_rows
from pipeline.topics import filled
from spark.conftest import ADDRESS, Reads
from spark.source_readers import rows, stream_of

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
    ("options", "tasks"), [({}, 1), ({"minPartitions": "5"}, 5), ({"maxRecordsPerPartition": "3"}, 4)]
)
def test_a_batch_of_a_stream_is_split_into_tasks(
    rocketmq: RocketMQ, options: dict[str, str], tasks: int
) -> None:
    topic = filled(rocketmq, "split", 10, text="x")
    stream = stream_of(rocketmq, topic, **options)
    start = stream.initialOffset()
    parts = stream.partitions(start, stream.latestOffset(start, ALL))
    assert len(parts) == tasks
    read = [offset for part in parts for batch in stream.read(part) for offset in batch.column(0).to_pylist()]
    assert read == list(range(10))


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
    options = {"nameServer": rocketmq.namesrv_addr, "subscribe": topic}
    columns = "keys string, tags string, body binary, queueOffset bigint"
    assert rows(RocketMQSource, columns, **options) == [(None, None, b"x", 0)]


def test_the_option_topic_wins_over_the_column_and_a_row_needs_one_of_them(rocketmq: RocketMQ) -> None:
    wanted, named = rocketmq.topic("wanted", queues=1), rocketmq.topic("named", queues=1)
    send_rows(rocketmq.namesrv_addr, {"body": [b"a", b"b"], "topic": [named, None]}, topic=wanted)
    assert [one.text for one in rocketmq.messages(wanted)] == ["a", "b"]
    assert rocketmq.messages(named) == []
    with pytest.raises(OptionError, match="column topic is null or empty in a row"):
        send_rows(rocketmq.namesrv_addr, {"body": [b"a", b"b"], "topic": [named, None]})


def test_a_row_without_a_queue_goes_to_any_queue(rocketmq: RocketMQ) -> None:
    topic = rocketmq.topic("any", queues=2)
    queues = pa.array([None, 1, None, 1], pa.int32())
    send_rows(rocketmq.namesrv_addr, {"body": [b"a", b"b", b"c", b"d"], "queueId": queues}, topic=topic)
    messages = rocketmq.messages(topic)
    assert sorted(one.text for one in messages) == ["a", "b", "c", "d"]
    assert {one.queue_id for one in messages if one.text in ("b", "d")} == {1}


def test_a_row_without_keys_is_a_message_without_keys(rocketmq: RocketMQ) -> None:
    topic = rocketmq.topic("keyless", queues=1)
    send_rows(rocketmq.namesrv_addr, {"body": [b"a", b"b"], "keys": [None, "k"]}, topic=topic)
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
