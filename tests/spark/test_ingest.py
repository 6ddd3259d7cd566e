"""Topics become tables: every message once, over several runs, and what cannot be decoded is kept aside."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pocketmq.pipeline.errors import OptionError
from pocketmq.pipeline.jobs.moving.ingest import (
    AVRO_MARK,
    Ingest,
    build,
    check_target,
    is_decoded,
    json_schema,
    marked_schema,
    prepared,
)
from pocketmq.pipeline.tables.planning.positions import Queue
from pocketmq.testing import RocketMQ, RocketMQCluster
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StructType

from pipeline.brokers.cluster_sends import send_to
from waiting import wait_until


def ingest_of(namesrv_addr: str, topics: str, folder: Path, **more: Any) -> Ingest:
    places = {name: str(folder / name) for name in ("target", "checkpoint")}
    return Ingest(namesrv_addr=namesrv_addr, topics=topics, **places, **more)


def test_a_second_run_appends_what_is_new(spark: SparkSession, rocketmq: RocketMQ, tmp_path: Path) -> None:
    topic = rocketmq.topic("lake", queues=2)
    ingest = ingest_of(rocketmq.namesrv_addr, topic, tmp_path, batch_messages=3, files=1)
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
    ingest = ingest_of(
        rocketmq.namesrv_addr, topic, tmp_path, decode="json", schema=str(schema), bad=str(tmp_path / "bad")
    )
    report = build(spark, ingest)
    assert report.findings == [f"2 messages cannot be decoded: they are in {ingest.bad}"]
    values = spark.read.parquet(ingest.target).orderBy("queueOffset").select("value.*").collect()
    assert [(row.id, row.name) for row in values] == [(1, "one"), (2, None)]
    bad = spark.read.parquet(str(tmp_path / "bad")).orderBy("queueOffset").collect()
    assert [bytes(row.body).decode() for row in bad] == ["not json", '{"id": "x"}']
    assert "_ok" not in {*bad[0].__fields__, *spark.read.parquet(ingest.target).columns}
    again = build(spark, msgspec.structs.replace(ingest, schema="id int, name string"))
    assert again.lead.startswith("0 messages")


WHOLE = ['{"id": 1}', ' {"id": 1, "more": [{"end": "x"}]}\n', '{"id": 1, "name": "]"}']
NOT_WHOLE = [
    *('{"id": 1}\n{"id": 2}', '{"id": 1} trailing', '{"id": 1},{"id": 2}', '[{"id": 1},{"id": 2}]'),
    *('{"id": 1}] x', '{"id": 1},{"end": "x"}] x', '{"id": 1}}', '{"id": 1', "", " ", "null", "17"),
]


def test_what_is_not_one_whole_value_is_not_decoded(spark: SparkSession) -> None:
    bodies = [text.encode() for text in (*WHOLE, *NOT_WHOLE)] + [b'{"id": 1, "name": "\xff"}']
    messages = spark.createDataFrame([(body,) for body in bodies], "body binary")
    messages = messages.withColumn("storeTimestamp", F.current_timestamp())
    ingest = ingest_of("h:1", "T", Path("/"), decode="json", schema="id int, name string")
    assert [row.value.id for row in prepared(messages, ingest).collect()] == [1] * len(WHOLE)
    bad = prepared(messages, ingest, is_bad=True).collect()
    assert [bytes(row.body) for row in bad] == bodies[len(WHOLE) :]


@pytest.mark.parametrize(
    "schema",
    ["id int, name string", "struct<id: int, name: string>", StructType().add("id", IntegerType()).json()],
)
def test_schemas_of_json_in_each_form(spark: SparkSession, schema: str) -> None:
    assert json_schema(schema).names[0] == "id"


def test_a_stream_goes_on_over_a_restart_of_its_broker_and_ends_when_it_is_asked_to(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RocketMQCluster(brokers=1) as cluster:
        cluster.grow("T", queues=1)
        queue = Queue("T", "b0", 0)
        endless = ingest_of(cluster.namesrv_addr, "T", tmp_path, every="100 ms", batch_messages=2)
        ended, reports = threading.Event(), []
        thread = threading.Thread(target=lambda: reports.append(build(spark, endless, ended)))

        def bodies() -> list[str]:
            if not (tmp_path / "target" / "_spark_metadata" / "0").exists():
                return []
            table = spark.read.schema("queueOffset bigint, body binary").parquet(endless.target)
            rows = table.orderBy("queueOffset").select("body").collect()
            return [bytes(row.body).decode() for row in rows]

        send_to(cluster, queue, 0, 3)
        thread.start()
        try:
            wait_until(lambda: len(bodies()) == 3, timeout=60)
            cluster.broker("b0").kill()
            time.sleep(1)  # some triggers without a broker
            cluster.broker("b0").start()
            send_to(cluster, queue, 3, 4)
            wait_until(lambda: len(bodies()) == 7, timeout=60)
        finally:
            ended.set()
            thread.join(60)
        assert bodies() == [f"m{number}" for number in range(7)]
        assert reports[0].lead.startswith("7 messages of T written")
        assert "Stopped: the next run with this checkpoint goes on there." in reports[0].lead
        send_to(cluster, queue, 7, 2)
        again = build(spark, msgspec.structs.replace(endless, every=None))
        assert again.lead.startswith("2 messages")
        assert bodies() == [f"m{number}" for number in range(9)]


def test_a_record_of_nulls_is_what_spark_makes_of_a_body_that_it_cannot_read(spark: SparkSession) -> None:
    """So the value is not null, and the row would count as decoded."""
    rows = spark.createDataFrame(
        [(b"a", (1, "x")), (b"bad", (None, None)), (b"b", (None, "y"))],
        "body binary, value struct<id: int, name: string>",
    )
    assert sorted(bytes(row.body) for row in rows.where(is_decoded(rows)).collect()) == [b"a", b"b"]


def test_the_schema_of_avro_has_a_mark_behind_the_record() -> None:
    """What follows the record in a body is then read as the mark, and is another."""
    schema = '{"type":"record","name":"O","namespace":"n","fields":[{"name":"a","type":"int"}]}'
    value, mark = json.loads(marked_schema(schema))["fields"]
    assert value == {"name": "value", "type": json.loads(schema)}
    assert mark["type"]["size"] == len(AVRO_MARK)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"decode": "avro", "schema": '{"type":"record","name":"O","fields":[{"name":"a","type":"int"}]}'},
            "--decode avro needs",
        ),
        ({"format": "delta"}, "the delta table cannot be written: "),
        ({"decode": "json", "schema": "id itn"}, r"--schema must name the fields .* got 'id itn': .*ITN"),
        ({"decode": "json", "schema": "id int,, name"}, "--schema must name the fields of a JSON object"),
        ({"decode": "json", "schema": "array<int>"}, "--schema must name the fields .* got 'array<int>'"),
        ({"decode": "json", "schema": '{"type":"struct"'}, "--schema must name the fields of a JSON object"),
        ({"decode": "json", "schema": "id int, ID string"}, "--schema names the field ID twice"),
    ],
)
def test_a_package_that_is_not_there_and_a_wrong_schema_are_named(
    spark: SparkSession, rocketmq: RocketMQ, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    topic = rocketmq.topic("package", queues=1)
    bad = str(tmp_path / "bad") if "decode" in options else None
    ingest = ingest_of(rocketmq.namesrv_addr, topic, tmp_path, bad=bad, **options)
    with pytest.raises(OptionError, match=message):
        build(spark, ingest)


def test_a_folder_whose_batches_spark_would_leave_out_is_refused(tmp_path: Path) -> None:
    target, checkpoint = tmp_path / "target", tmp_path / "checkpoint"
    check_target("--to", str(target), str(checkpoint))
    (target / "_spark_metadata").mkdir(parents=True)
    (target / "_spark_metadata" / "0").touch()
    with pytest.raises(
        OptionError, match=r"--to: .*target was written with another checkpoint than .*checkpoint:"
    ):
        check_target("--to", str(target), str(checkpoint))
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "offsets" / "0").touch()
    check_target("--to", str(target), str(checkpoint))


def test_files_that_no_ingest_has_written_are_not_hidden(tmp_path: Path) -> None:
    (tmp_path / "part-0.parquet").touch()
    with pytest.raises(OptionError, match=r"--to: .* holds part-0\.parquet, which no ingest has written"):
        check_target("--to", str(tmp_path), str(tmp_path / "checkpoint"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decode": "avro", "schema": "id int"}, "--schema must be an Avro schema of a record"),
        (
            {"decode": "protobuf", "schema": "/no/such.desc", "message": "M"},
            "--schema must be a descriptor file",
        ),
    ],
)
def test_a_wrong_schema_is_named_before_spark_starts(options: dict[str, str], message: str) -> None:
    wrong = ingest_of("h:1", "T", Path("/"), bad="/b", **options)
    with pytest.raises(OptionError, match=message):
        wrong.check()
