"""The sink: every row acknowledged, with its id, order and delay, over failures and repetitions."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pocketmq.protocol.message.topics import HALF_TOPIC, OP_HALF_TOPIC
from pocketmq.testing import EmbeddedServer, RocketMQ
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.topics import bodies, filled, send
from spark.conftest import ADDRESS, Reads


def write(frame: DataFrame, rocketmq: RocketMQ, **options: str) -> None:
    writer = frame.write.format("rocketmq").mode("append").option(ADDRESS, rocketmq.namesrv_addr)
    writer.options(**options).save()


def test_rows_become_messages_with_all_their_columns(spark: SparkSession, rocketmq: RocketMQ) -> None:
    topic = rocketmq.topic("rows", queues=2)
    frame = spark.range(50).selectExpr(
        "cast(id as string) body",
        "array(concat('k', id), concat('l', id)) keys",
        "if(id % 2 = 0, 'even', null) tags",
        "map('color', 'red') properties",
        "cast(id % 2 as int) queueId",
        "cast(7 as int) flag",
    )
    write(frame, rocketmq, topic=topic, batchRows="7")
    messages = {message.text: message for message in rocketmq.messages(topic)}
    assert sorted(messages, key=int) == [str(number) for number in range(50)]
    for text, message in messages.items():
        assert message.queue_id == int(text) % 2
        assert message.tags == ("even" if int(text) % 2 == 0 else None)
        assert message.keys == [f"k{text}", f"l{text}"]
        assert message.properties["color"] == "red"
    assert len({message.message_id for message in messages.values()}) == 50


def test_rows_of_one_sharding_key_stay_in_order(spark: SparkSession, rocketmq: RocketMQ) -> None:
    topic = rocketmq.topic("ordered", queues=4)
    frame = spark.range(0, 200, 1, 1).selectExpr(
        "cast(id as string) body", "concat('order', id % 5) shardingKey"
    )
    write(frame, rocketmq, topic=topic, batchRows="3", inFlight="8")
    by_key: dict[str, list[int]] = {}
    for message in rocketmq.messages(topic):
        by_key.setdefault(message.properties["__SHARDINGKEY"], []).append(int(message.text))
    assert by_key == {f"order{key}": list(range(key, 200, 5)) for key in range(5)}


def test_the_topic_may_be_a_column_and_delayed_rows_wait(spark: SparkSession, rocketmq: RocketMQ) -> None:
    now, later = rocketmq.topic("now", queues=1), rocketmq.topic("later", queues=1)
    frame = spark.createDataFrame(
        [(now, "a", None), (later, "b", 18)], "topic string, body string, delayTimeLevel int"
    )
    write(frame, rocketmq)
    assert [message.text for message in rocketmq.messages(now)] == ["a"]
    assert rocketmq.messages(later) == [], "two hours from now"


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (["'x' body", "1 color"], {"topic": "T"}, "unknown column color"),
        (["'x' body", "map('', 'y') properties"], {"topic": "T"}, "a name must not be empty"),
    ],
)
def test_errors_are_raised_before_a_message_is_sent(
    spark: SparkSession, rocketmq: RocketMQ, columns: list[str], options: dict[str, str], message: str
) -> None:
    with pytest.raises(Exception, match=message):
        write(spark.range(1).selectExpr(*columns), rocketmq, **options)


def test_overwrite_is_refused(spark: SparkSession, rocketmq: RocketMQ) -> None:
    writer = spark.range(1).selectExpr("'x' body").write.format("rocketmq").mode("overwrite")
    with pytest.raises(Exception, match="a topic can only be appended to"):
        writer.option(ADDRESS, rocketmq.namesrv_addr).option("topic", "T").save()


def test_a_transactional_write_is_visible_completely_or_not_at_all(
    spark: SparkSession, rocketmq: RocketMQ
) -> None:
    topic = rocketmq.topic("whole", queues=2)
    options = {"topic": topic, "guarantee": "transactional"}
    rows = spark.range(0, 12, 1, 2)
    broken = rows.selectExpr("if(id = 11, raise_error('a broken row'), cast(id as string)) body")
    with pytest.raises(Exception, match="a broken row"):
        write(broken, rocketmq, **options)
    assert rocketmq.messages(topic) == []
    write(
        rows.selectExpr("cast(id as string) body", "'paid' tags", "concat('k', id) keys"), rocketmq, **options
    )
    messages = rocketmq.messages(topic)
    assert sorted(int(message.text) for message in messages) == list(range(12))
    assert {message.tags for message in messages} == {"paid"}
    assert len({message.message_id for message in messages}) == 12


@pytest.fixture
def single_rows(spark: SparkSession) -> Iterator[None]:
    """Batches of one row: the queues of a batch are looked up before its first row is sent."""
    key = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(key)
    spark.conf.set(key, 1)
    yield
    spark.conf.set(key, before)


def test_a_transactional_write_that_fails_leaves_no_half_message(
    spark: SparkSession, single_rows: None
) -> None:
    """Neither of completed tasks, nor of the failed one, nor of its earlier attempts. 4.9 brokers record the end of
    each half message in another message."""
    with EmbeddedServer(emulate="4.9") as server:
        rocketmq = RocketMQ(server)
        rows = spark.range(0, 12, 1, 2).selectExpr("cast(id as string) body", "if(id = 11, -1, 0) queueId")
        with pytest.raises(Exception, match="has no writable queue -1"):
            write(rows, rocketmq, topic=rocketmq.topic("half"), guarantee="transactional")
        halves = rocketmq.messages(HALF_TOPIC)
        assert len(halves) >= 11
        ended = sorted(int(message.text) for message in rocketmq.messages(OP_HALF_TOPIC))
        assert ended == [half.queue_offset for half in halves]
        assert rocketmq.messages("half") == []


def copy(rows: DataFrame, rocketmq: RocketMQ, target: str, folder: Path, **options: str) -> None:
    """All rows of this moment, by a stream with a name: the engine hands its own options over, the name too."""
    writer = (
        rows.writeStream.format("rocketmq")
        .option(ADDRESS, rocketmq.namesrv_addr)
        .options(topic=target, **options)
    )
    writer = writer.option("checkpointLocation", str(folder)).trigger(availableNow=True).queryName("copies")
    assert writer.start().awaitTermination(60)


def forget_commit(folder: Path) -> None:
    """As after a crash between writing the first batch and committing it."""
    for name in ("0", ".0.crc"):
        (folder / "commits" / name).unlink(missing_ok=True)


@pytest.mark.on_demand
def test_a_transactional_batch_that_was_committed_is_not_sent_again(
    spark: SparkSession, stream: Reads, rocketmq: RocketMQ, tmp_path: Path
) -> None:
    source, target = filled(rocketmq, "in", 6), rocketmq.topic("out", queues=1)
    rows = stream(source).select("body")
    copy(rows, rocketmq, target, tmp_path, guarantee="transactional")
    forget_commit(tmp_path)
    send(rocketmq, source, range(6, 7))
    copy(rows, rocketmq, target, tmp_path, guarantee="transactional")
    assert [message.text for message in rocketmq.messages(target)] == bodies(7)


def test_a_repeated_batch_has_the_same_ids(
    spark: SparkSession, stream: Reads, rocketmq: RocketMQ, tmp_path: Path
) -> None:
    """Without the commit of the last batch it is written again, and every duplicate is recognized by its id."""
    source, target = filled(rocketmq, "in", 10), rocketmq.topic("out", queues=1)
    rows = stream(source).select("body", F.lit("copied").alias("tags"))
    copy(rows, rocketmq, target, tmp_path)
    first = {message.text: message.message_id for message in rocketmq.messages(target)}
    forget_commit(tmp_path)
    copy(rows, rocketmq, target, tmp_path)
    copies = rocketmq.messages(target)
    assert len(copies) == 20
    assert {(message.text, message.message_id) for message in copies} == set(first.items())
