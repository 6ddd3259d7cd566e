"""Topics become tables: every message once, over several runs, and what cannot be decoded is kept aside."""

from pathlib import Path

import msgspec
import pytest
from pocketmq.testing import RocketMQ

pytest.importorskip("pyspark")

from pocketmq.pipeline.moving.ingest import Ingest, build
from pyspark.sql import SparkSession


def test_a_second_run_appends_what_is_new(spark: SparkSession, rocketmq: RocketMQ, tmp_path: Path) -> None:
    topic = rocketmq.topic("lake", queues=2)
    ingest = Ingest(
        namesrv_addr=rocketmq.namesrv_addr,
        topics=topic,
        target=str(tmp_path / "table"),
        checkpoint=str(tmp_path / "checkpoint"),
        batch_messages=3,
        files=1,
    )
    for run in range(2):
        for number in range(5):
            rocketmq.send(topic, f"run {run} message {number}", keys=f"k{number}")
        report = build(spark, ingest)
        assert report.lead.startswith("5 messages")
        assert report.findings == []
    rows = spark.read.parquet(ingest.target)
    assert rows.count() == rows.select("msgId").distinct().count() == 10
    assert {"date", "topic", "body", "storeTimestamp"} <= set(rows.columns)
    assert [row.topic for row in rows.select("topic").distinct().collect()] == [topic]


def test_json_is_decoded_and_the_rest_is_kept_aside(
    spark: SparkSession, rocketmq: RocketMQ, tmp_path: Path
) -> None:
    topic = rocketmq.topic("json", queues=1)
    for body in ('{"id": 1, "name": "one"}', "not json", '{"id": "x"}', '{"id": 2}'):
        rocketmq.send(topic, body)
    schema = tmp_path / "order.ddl"
    schema.write_text("id int, name string\n")
    ingest = Ingest(
        namesrv_addr=rocketmq.namesrv_addr,
        topics=topic,
        target=str(tmp_path / "table"),
        checkpoint=str(tmp_path / "checkpoint"),
        decode="json",
        schema=str(schema),
        bad=str(tmp_path / "bad"),
    )
    report = build(spark, ingest)
    assert report.findings == [f"2 messages cannot be decoded: they are in {ingest.bad}"]
    values = spark.read.parquet(ingest.target).orderBy("queueOffset").select("value.*").collect()
    assert [(row.id, row.name) for row in values] == [(1, "one"), (2, None)]
    bad = spark.read.parquet(str(tmp_path / "bad")).orderBy("queueOffset").collect()
    assert [bytes(row.body).decode() for row in bad] == ["not json", '{"id": "x"}']
    again = build(spark, msgspec.structs.replace(ingest, schema="id int, name string"))
    assert again.lead.startswith("0 messages")
