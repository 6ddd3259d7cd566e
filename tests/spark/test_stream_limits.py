"""The size of a stream's batches, from the reader itself, without a JVM."""

from typing import Any

import pytest
from pocketmq.pipeline.errors import CheckpointError
from pocketmq.testing import RocketMQ
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes

from spark.source_readers import stream_of


def size(topic: str, start: dict[str, Any], end: dict[str, Any]) -> int:
    def total(position: dict[str, Any]) -> int:
        return sum(position["topics"][topic]["broker-a"].values())

    return total(end) - total(start)


def test_a_small_batch_waits_for_more(rocketmq: RocketMQ) -> None:
    topic = rocketmq.topic("small", queues=2)
    patient = stream_of(rocketmq, topic, minOffsetsPerTrigger="5", maxTriggerDelay="10m")
    start = patient.initialOffset()
    for number in range(4):
        rocketmq.send(topic, "x", queue_id=number % 2)
    assert patient.latestOffset(start, patient.getDefaultReadLimit()) is start
    rocketmq.send(topic, "x", queue_id=0)
    end = patient.latestOffset(start, patient.getDefaultReadLimit())
    assert size(topic, start, end) == 5
    assert patient.latestOffset(end, ReadAllAvailable()) is end


def test_a_small_batch_does_not_wait_forever(rocketmq: RocketMQ) -> None:
    topic = rocketmq.topic("late", queues=1)
    impatient = stream_of(rocketmq, topic, minOffsetsPerTrigger="5", maxTriggerDelay="0ms")
    start = impatient.initialOffset()
    rocketmq.send(topic, "x")
    assert size(topic, start, impatient.latestOffset(start, ReadAllAvailable())) == 1


def test_a_small_batch_does_not_wait_under_available_now(rocketmq: RocketMQ) -> None:
    topic = rocketmq.topic("now", queues=1)
    one = stream_of(rocketmq, topic, minOffsetsPerTrigger="5")
    start = one.initialOffset()
    rocketmq.send(topic, "x")
    one.prepareForTriggerAvailableNow()
    rocketmq.send(topic, "later")
    assert size(topic, start, one.latestOffset(start, ReadAllAvailable())) == 1


def test_a_byte_limit_uses_the_size_of_the_next_messages(rocketmq: RocketMQ) -> None:
    topic = rocketmq.topic("bytes", queues=2)
    one = stream_of(rocketmq, topic, maxBytesPerTrigger="100000")
    start = position = one.initialOffset()
    for number in range(40):
        rocketmq.send(topic, "x" * 9_800, queue_id=number % 2)
    limit = one.getDefaultReadLimit()
    assert limit == ReadMaxBytes(100_000)
    sizes = []
    while (end := one.latestOffset(position, limit)) is not position:
        sizes.append(size(topic, position, end))
        position = end
    assert sum(sizes) == size(topic, start, position) == 40
    assert max(sizes) <= 10
    assert len(sizes) <= 6, "not one by one"


def test_the_smaller_of_two_limits_applies(rocketmq: RocketMQ) -> None:
    """Spark passes only one limit."""
    topic = rocketmq.topic("both", queues=1)
    for _ in range(20):
        rocketmq.send(topic, "x" * 9_800)
    for rows, at_most in (("3", 3), ("18", 10)):
        one = stream_of(rocketmq, topic, maxOffsetsPerTrigger=rows, maxBytesPerTrigger="100000")
        start = one.initialOffset()
        assert 1 < size(topic, start, one.latestOffset(start, one.getDefaultReadLimit())) <= at_most


def test_a_checkpoint_of_topics_that_do_not_match_the_pattern_is_refused(rocketmq: RocketMQ) -> None:
    topic = rocketmq.topic("meant", queues=1)
    start = stream_of(rocketmq, topic).initialOffset()
    for pattern, is_meant in ((f"{topic}.*", True), ("another.*", False)):
        one = stream_of(rocketmq, subscribePattern=pattern)
        if is_meant:
            assert one.latestOffset(start, ReadAllAvailable()) is start
        else:
            with pytest.raises(
                CheckpointError, match=f"the checkpoint is of {topic}, the query reads another"
            ):
                one.latestOffset(start, ReadAllAvailable())


def test_a_stream_at_latest_begins_at_the_first_answer(rocketmq: RocketMQ) -> None:
    """Spark asks more than once; messages between two answers would be lost."""
    topic = rocketmq.topic("begun", queues=1)
    one = stream_of(rocketmq, topic, startingOffsets="latest")
    start = one.initialOffset()
    rocketmq.send(topic, "x")
    assert one.initialOffset() == start
    assert size(topic, start, one.latestOffset(start, ReadAllAvailable())) == 1
