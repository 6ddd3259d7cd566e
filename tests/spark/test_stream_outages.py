"""A stream's positions while brokers stop, die, lag and lose messages: from the reader itself, without a JVM."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from pocketmq.pipeline.errors import DataLossError
from pocketmq.pipeline.spark.sources.topic_stream import TopicStreamReader
from pocketmq.pipeline.tables.planning.positions import Queue, StreamPosition
from pocketmq.testing import RocketMQ, RocketMQCluster
from pyspark.sql.streaming.datasource import ReadAllAvailable

from pipeline.brokers.cluster_sends import send_to
from pipeline.topics import filled
from spark.source_readers import stream_of

FIRST, SECOND = Queue("T", "b0", 0), Queue("T", "b1", 0)
ALL = ReadAllAvailable()


@pytest.fixture
def cluster() -> Iterator[RocketMQCluster]:
    with RocketMQCluster(brokers=2, slaves=1) as cluster:
        cluster.grow("T", queues=1)
        yield cluster


def reader_of(cluster: RocketMQCluster, **options: str) -> TopicStreamReader:
    return stream_of(cluster, "T", **{"retryTimeoutMs": "5000", **options})


def offsets_of(value: dict[str, Any]) -> dict[Queue, int]:
    return StreamPosition.of_json(value).offsets


def rows(reader: TopicStreamReader, start: dict[str, Any], end: dict[str, Any]) -> int:
    tasks = reader.partitions(start, end)
    return sum(batch.num_rows for task in tasks for batch in reader.read(task))


def test_a_restart_of_every_broker_of_a_topic_does_not_end_a_stream(cluster: RocketMQCluster) -> None:
    send_to(cluster, FIRST, 0, 3)
    stream = reader_of(cluster)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ALL)
    assert offsets_of(end) == {FIRST: 3, SECOND: 0}
    for broker in cluster.brokers:
        broker.stop()
    assert stream.latestOffset(end, ALL) is end
    assert reader_of(cluster).latestOffset(end, ALL) is end, "also after a restart of the query"
    for broker in cluster.brokers:
        broker.start()
    send_to(cluster, FIRST, 3, 2)
    later = stream.latestOffset(end, ALL)
    assert offsets_of(later) == {FIRST: 5, SECOND: 0}
    assert rows(stream, end, later) == 2


def test_available_now_waits_for_a_topic_that_it_has_read_before(cluster: RocketMQCluster) -> None:
    send_to(cluster, FIRST, 0, 3)
    stream = reader_of(cluster)
    start = stream.initialOffset()
    for broker in cluster.brokers:
        broker.stop()

    def start_again() -> None:
        for broker in cluster.brokers:
            broker.start()

    again = reader_of(cluster)
    again.prepareForTriggerAvailableNow()
    thread = threading.Timer(0.2, start_again)
    thread.start()
    try:
        end = again.latestOffset(start, ALL)
    finally:
        thread.join()
    assert offsets_of(end)[FIRST] == 3
    send_to(cluster, FIRST, 3, 2)
    assert again.latestOffset(end, ALL) is end, "the end of the query is fixed"


@pytest.mark.parametrize("fails", ["true", "false"])
def test_a_slave_that_lags_neither_loses_messages_nor_makes_the_stream_read_them_again(
    cluster: RocketMQCluster, fails: str
) -> None:
    send_to(cluster, FIRST, 0, 3)
    cluster.wait_replicated()
    cluster.partition(["b0-1"], ["b0"])
    send_to(cluster, FIRST, 3, 2)
    stream = reader_of(cluster, failOnDataLoss=fails)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ALL)
    assert rows(stream, start, end) == 5
    cluster.broker("b0").stop()
    assert stream.latestOffset(end, ALL) is end
    send_to(cluster, SECOND, 0, 1)
    other = stream.latestOffset(end, ALL)
    assert offsets_of(other) == {FIRST: 5, SECOND: 1}, "the other broker is read on"
    assert rows(stream, end, other) == 1
    cluster.heal()
    cluster.broker("b0").start()
    send_to(cluster, FIRST, 5, 1)
    last = stream.latestOffset(other, ALL)
    assert rows(stream, other, last) == 1


@pytest.mark.parametrize(("position_ms", "begins_at"), [(1 << 60, 3), (1, 0), (0, 3)])
def test_after_a_real_loss_a_stream_goes_on_at_the_end_or_at_the_start_of_a_new_topic(
    rocketmq: RocketMQ, position_ms: int, begins_at: int
) -> None:
    """The master's queue ends before the position. Messages that were stored after the position was determined are
    those of a topic that was deleted and created anew."""
    topic = filled(rocketmq, "lost", 3, text="x")
    queue = Queue(topic, "broker-a", 0)
    start = StreamPosition({queue: 99}, time_ms=position_ms).to_json()
    with pytest.raises(DataLossError, match=r"96 messages, offsets \[3, 99\), do not exist"):
        stream_of(rocketmq, topic).latestOffset(start, ALL)
    tolerant = stream_of(rocketmq, topic, failOnDataLoss="false")
    end = tolerant.latestOffset(start, ALL)
    position = StreamPosition.of_json(end)
    assert (position.start_offsets, position.offsets) == ({queue: begins_at}, {queue: 3})
    assert position.time_ms > 1 << 40
    assert rows(tolerant, start, end) == 3 - begins_at
