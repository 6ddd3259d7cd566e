"""Batch reads of topics: every row once, columns as stored, ranges as requested, losses reported."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from pocketmq.pipeline.tables.records.columns import LEAN_COLUMNS, MESSAGE_COLUMNS
from pocketmq.testing import EmbeddedServer, RocketMQ
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipeline.topics import commit
from spark.conftest import ADDRESS, Reads, bodies


@pytest.fixture
def topic(rocketmq: RocketMQ) -> str:
    """12 messages in 3 queues, with tags A and B alternating."""
    made = rocketmq.topic("orders", queues=3)
    for number in range(12):
        rocketmq.send(made, f"m{number:02}", tags="AB"[number % 2], keys=f"k{number}", queue_id=number % 3)
    return made


ALL = [f"m{number:02}" for number in range(12)]


def test_every_message_is_one_row_with_its_stored_values(read: Reads, topic: str, rocketmq: RocketMQ) -> None:
    rows = {bytes(row.body).decode(): row for row in read(topic, includeProperties="true").collect()}
    assert sorted(rows) == ALL
    for message in rocketmq.messages(topic):
        row = rows[message.text]
        assert (row.topic, row.queueId, row.queueOffset) == (topic, message.queue_id, message.queue_offset)
        assert (row.tags, row.keys, row.msgId) == (message.tags, " ".join(message.keys), message.message_id)
        assert row.properties["TAGS"] == row.tags
        assert row.brokerName == "broker-a"
        stored = row.storeTimestamp.replace(tzinfo=UTC)
        assert round(stored.timestamp() * 1000) == message.store_timestamp


def test_the_default_columns_are_lean_and_others_can_be_chosen(read: Reads, topic: str) -> None:
    assert tuple(read(topic).columns) == LEAN_COLUMNS
    assert read(topic, columns="all").columns == list(MESSAGE_COLUMNS)
    assert read(topic, columns="msgId, body").columns == ["body", "msgId"]
    assert "properties" not in read(topic, columns="all", includeProperties="false").columns
    with pytest.raises(Exception, match="option columns must be lean, all or names of topic, brokerName"):
        read(topic, columns="offset")


def test_only_the_columns_of_the_users_schema_are_read(read: Reads, topic: str) -> None:
    rows = read(topic, "queueOffset bigint, body binary").collect()
    assert rows[0].__fields__ == ["queueOffset", "body"]
    assert sorted(bytes(row.body).decode() for row in rows) == ALL


def test_a_read_begins_and_ends_at_the_offsets_in_the_options(read: Reads, topic: str) -> None:
    start = json.dumps({topic: {"0": 1, "1": -2, "2": 4}})
    end = json.dumps({topic: {"broker-a": {"0": 3, "1": 1, "2": -1}}})
    frame = read(topic, startingOffsets=start, endingOffsets=end)
    assert bodies(frame) == ["m01", "m03", "m06"]


def test_committed_offsets_of_a_group_are_a_start(read: Reads, rocketmq: RocketMQ, topic: str) -> None:
    group = rocketmq.group("spark")
    commit(rocketmq, topic, group, {1: 3})
    frame = read(topic, startingOffsets="committed", groupId=group)
    assert bodies(frame) == sorted(set(ALL) - {"m01", "m04", "m07"})


def test_large_queues_are_split_and_no_message_is_read_twice(read: Reads, topic: str) -> None:
    assert read(topic).rdd.getNumPartitions() == 1, "three queues of four messages share a task"
    for options, count in (({"minPartitions": "6"}, 6), ({"maxRecordsPerPartition": "1"}, 12)):
        frame = read(topic, **options)
        assert frame.rdd.getNumPartitions() == count
        assert bodies(frame) == ALL


def test_gaps_that_a_tag_filter_leaves_are_not_an_error(read: Reads, topic: str) -> None:
    assert bodies(read(topic, subExpression="A")) == ALL[::2]
    assert bodies(read(topic, subExpression="A || B")) == ALL
    assert bodies(read(topic, subExpression="none")) == []


def test_two_tags_with_one_hash_are_distinguished(read: Reads, rocketmq: RocketMQ) -> None:
    """`Aa` and `BB` have the same Java hash: the broker sends both."""
    topic = rocketmq.topic("hash", queues=1)
    rocketmq.send(topic, "wanted", tags="Aa")
    rocketmq.send(topic, "other", tags="BB")
    assert bodies(read(topic, subExpression="Aa")) == ["wanted"]


def test_the_broker_applies_a_sql_filter(read: Reads) -> None:
    with EmbeddedServer(enablePropertyFilter=True) as server:
        rocketmq = RocketMQ(server)
        topic = rocketmq.topic("Sql", queues=3)
        for number, text in enumerate(ALL):
            properties = {"amount": str(number)}
            rocketmq.send(topic, text, tags="AB"[number % 2], properties=properties, queue_id=number % 3)

        def chosen(expression: str) -> list[str]:
            options = {ADDRESS: server.namesrv_addr, "filterType": "sql92", "subExpression": expression}
            return bodies(read(topic, **options, retryTimeoutMs="500"))

        assert chosen("TAGS = 'A' AND amount > 3") == ["m04", "m06", "m08", "m10"]
        assert chosen("TAGS IS NULL") == []
        with pytest.raises(Exception, match="option subExpression: broker-a cannot filter by 'TAGS ==='"):
            chosen("TAGS ===")


def test_filters_narrow_what_is_read(read: Reads, topic: str) -> None:
    frame = read(topic, pushdown="true")
    assert bodies(frame.where("queueId = 1 and queueOffset >= 2")) == ["m07", "m10"]
    assert frame.where("queueId = 1 and queueOffset >= 2").rdd.getNumPartitions() == 1
    assert bodies(frame.where("tags = 'B' and queueId in (0, 2)")) == ["m03", "m05", "m09", "m11"]
    soon = datetime.now(UTC) + timedelta(hours=1)
    assert bodies(frame.where(F.col("storeTimestamp") > F.lit(soon))) == []
    assert bodies(frame.where(F.col("storeTimestamp") <= F.lit(soon))) == ALL


def test_a_session_without_pushdown_can_read_too(spark: SparkSession, read: Reads, topic: str) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        assert bodies(read(topic).where("queueId = 1")) == ["m01", "m04", "m07", "m10"]
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


def test_sql_finds_the_format(spark: SparkSession, rocketmq: RocketMQ, topic: str) -> None:
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW v USING rocketmq "
        f"OPTIONS (`{ADDRESS}` '{rocketmq.namesrv_addr}', subscribe '{topic}')"
    )
    assert spark.sql("SELECT count(*) FROM v WHERE tags = 'A'").collect()[0][0] == 6


def test_errors_are_sentences(read: Reads) -> None:
    with pytest.raises(Exception, match="topic nothing-of-that-name does not exist on any broker"):
        read("nothing-of-that-name", retryTimeoutMs="500").collect()
