"""Streams: no message lost or repeated over failures, restarts, new queues and an unreachable broker."""

import functools
from pathlib import Path
from typing import Any

import pytest
from pocketmq.testing import EmbeddedServer, RocketMQ
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pipeline.topics import make
from spark.conftest import ADDRESS, Reads
from waiting import wait_until

LIMIT_SECONDS = 60.0
wait_long_until = functools.partial(wait_until, timeout=LIMIT_SECONDS)


def send(rocketmq: RocketMQ, topic: str, first: int, count: int, queues: int = 2) -> list[str]:
    texts = [f"m{number:04}" for number in range(first, first + count)]
    for number, text in enumerate(texts):
        rocketmq.send(topic, text, queue_id=number % queues)
    return texts


def to_parquet(frame: DataFrame, folder: Path, **settings: Any) -> StreamingQuery:
    """All messages of this moment, exactly once, into files."""
    writer = frame.selectExpr("cast(body as string) text", "queueId", "queueOffset").writeStream
    return (
        writer.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .option("path", str(folder / "rows"))
        .trigger(**{"availableNow": True, **settings})
        .start()
    )


def ended(query: StreamingQuery) -> StreamingQuery:
    assert query.awaitTermination(int(LIMIT_SECONDS)), "the query did not end"
    return query


def wait_for_rows(query: StreamingQuery, count: int) -> None:
    wait_long_until(lambda: sum(progress.numInputRows for progress in query.recentProgress) >= count)


def texts(spark: SparkSession, folder: Path) -> list[str]:
    return sorted(row.text for row in spark.read.parquet(str(folder / "rows")).collect())


def test_available_now_reads_all_messages_of_that_moment_in_limited_batches(
    spark: SparkSession, stream: Reads, rocketmq: RocketMQ, tmp_path: Path
) -> None:
    topic = rocketmq.topic("limits", queues=2)
    sent = send(rocketmq, topic, 0, 20)
    query = ended(to_parquet(stream(topic, maxOffsetsPerTrigger="8"), tmp_path))
    rows = [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]
    assert (sum(rows), len(rows)) == (20, 3)
    assert texts(spark, tmp_path) == sent
    more = send(rocketmq, topic, 20, 5)
    ended(to_parquet(stream(topic, maxOffsetsPerTrigger="8"), tmp_path))
    assert texts(spark, tmp_path) == sent + more


def test_a_failed_first_batch_at_latest_is_read_again_and_not_lost(
    stream: Reads, rocketmq: RocketMQ, tmp_path: Path
) -> None:
    topic = rocketmq.topic("first", queues=1)
    send(rocketmq, topic, 0, 3, 1)
    seen: list[str] = []
    fails = [True]

    def batch(frame: DataFrame, number: int) -> None:
        rows = [bytes(row.body).decode() for row in frame.collect()]
        if rows and fails:
            fails.clear()
            raise RuntimeError("the first batch fails")
        seen.extend(rows)

    def start() -> StreamingQuery:
        writer = stream(topic, startingOffsets="latest").writeStream.foreachBatch(batch)
        return writer.option("checkpointLocation", str(tmp_path)).start()

    query = start()
    # The first position must be taken before the messages come that the failing batch reads.
    wait_long_until(
        lambda: query.lastProgress is not None or bool(query.status["message"].startswith("Waiting"))
    )
    lost_otherwise = send(rocketmq, topic, 3, 4, 1)
    wait_long_until(lambda: not query.isActive)
    assert query.exception() is not None
    later = send(rocketmq, topic, 7, 2, 1)
    again = start()
    try:
        wait_long_until(lambda: len(seen) >= 6)
    finally:
        again.stop()
    assert seen == lost_otherwise + later


def test_a_repeated_batch_has_the_same_rows(
    spark: SparkSession, stream: Reads, rocketmq: RocketMQ, tmp_path: Path
) -> None:
    """Without the last commit, as after a crash between writing and committing, the rows are the same."""
    topic = rocketmq.topic("repeat", queues=2)
    sent = send(rocketmq, topic, 0, 10)
    ended(to_parquet(stream(topic, maxOffsetsPerTrigger="6"), tmp_path))
    send(rocketmq, topic, 10, 4)
    newest = max((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    newest.unlink()
    (newest.parent / f".{newest.name}.crc").unlink(missing_ok=True)
    ended(to_parquet(stream(topic, maxOffsetsPerTrigger="6"), tmp_path))
    assert texts(spark, tmp_path) == sorted([*sent, *(f"m{number:04}" for number in range(10, 14))])


def test_new_queues_are_read_from_their_first_message(
    spark: SparkSession, stream: Reads, rocketmq: RocketMQ, tmp_path: Path
) -> None:
    topic = rocketmq.topic("growing", queues=3)
    sent = send(rocketmq, topic, 0, 6, 3)
    query = to_parquet(stream(topic), tmp_path, availableNow=None, processingTime="0 seconds")
    try:
        wait_for_rows(query, 6)
        make(rocketmq, topic, readable=6, writable=6)
        sent += send(rocketmq, topic, 6, 12, 6)
        wait_for_rows(query, 18)
    finally:
        query.stop()
    assert texts(spark, tmp_path) == sent


def test_a_query_continues_when_the_broker_is_back(spark: SparkSession, tmp_path: Path) -> None:
    with EmbeddedServer(store=tmp_path / "store") as server:
        one = RocketMQ(server)
        ports = int(server.namesrv_addr.rpartition(":")[2]), int(server.broker_addr.rpartition(":")[2])
        topic = one.topic("back", queues=2)
        sent = send(one, topic, 0, 6)
        options = {ADDRESS: server.namesrv_addr, "subscribe": topic, "startingOffsets": "earliest"}
        frame = spark.readStream.format("rocketmq").options(**options).load()
        query = to_parquet(frame, tmp_path, availableNow=None, processingTime="0 seconds")
        wait_for_rows(query, 6)
    settings = {"listenPort": ports[1], "isFastPortRequired": False}
    with EmbeddedServer(settings, store=tmp_path / "store", namesrv_port=ports[0]) as server:
        sent += send(RocketMQ(server), topic, 6, 6)
        try:
            wait_for_rows(query, 12)
        finally:
            query.stop()
    assert query.exception() is None
    assert texts(spark, tmp_path) == sent


def test_progress_is_committed_to_a_group_also_of_the_last_batch(
    spark: SparkSession, stream: Reads, rocketmq: RocketMQ, tmp_path: Path
) -> None:
    from pocketmq.pipeline.spark.session.progress import commit_progress

    topic, group = rocketmq.topic("progress", queues=2), rocketmq.group("spark")
    send(rocketmq, topic, 0, 10)
    with commit_progress(spark, rocketmq.namesrv_addr, group):
        ended(to_parquet(stream(topic, maxOffsetsPerTrigger="4", groupId=group), tmp_path))
        wait_long_until(lambda: rocketmq.lag(topic, group) == 0)
    assert rocketmq.offsets(topic, group) == {0: 5, 1: 5}


def test_a_checkpoint_of_another_topic_is_refused(stream: Reads, rocketmq: RocketMQ, tmp_path: Path) -> None:
    first, second = rocketmq.topic("one"), rocketmq.topic("two")
    send(rocketmq, first, 0, 2)
    ended(to_parquet(stream(first), tmp_path))
    send(rocketmq, second, 0, 2)
    query = to_parquet(stream(second), tmp_path)
    with pytest.raises(Exception, match=f"the checkpoint is of {first}"):
        query.awaitTermination(int(LIMIT_SECONDS))
