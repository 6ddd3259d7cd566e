"""Runs and statistics of a store as tables of Spark, and the audit over faults of every kind."""

import struct
from pathlib import Path

import pytest

from spark.planted_store import COUNT, TOPIC, write_store

pytest.importorskip("pyspark")

from pocketmq.pipeline.jobs import audit as audit_job
from pocketmq.pipeline.sql.spark_engine import SparkEngine
from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("sound") / "store", is_faulty=False)


def test_statistics_count_every_message_whatever_the_splits(spark: SparkSession, sound: Path) -> None:
    reader = spark.read.format("rocketmq-store").options(table="stats", splitBytes="2000")
    stats = reader.load(str(sound))
    assert stats.rdd.getNumPartitions() > 2
    rows = stats.groupBy("topic", "queueId").sum("messages").collect()
    assert sorted(map(tuple, rows)) == [(TOPIC, 0, COUNT // 2), (TOPIC, 1, COUNT // 2)]
    (row,) = reader.schema("bytes bigint, messages bigint").load(str(sound)).groupBy().sum().collect()
    assert row[1] == COUNT


def test_a_sound_queue_is_one_run_in_each_task(spark: SparkSession, sound: Path) -> None:
    runs = spark.read.format("rocketmq-store").options(table="runs", minPartitions="1").load(str(sound))
    rows = runs.select("status", "queueId", "firstOffset", "lastOffset", "records").collect()
    assert sorted(map(tuple, rows)) == [("ok", queue_id, 0, 39, 40) for queue_id in (0, 1)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checkQueues": "true"}, "option checkQueues is for table=runs, got table=messages"),
        ({"table": "runs", "driver": "consumequeue"}, "option driver must be commitlog for table=runs"),
        ({"table": "run"}, "option table must be one of messages, runs, stats, consumequeue"),
    ],
)
def test_options_that_do_not_fit_the_table_are_named(
    spark: SparkSession, sound: Path, options: dict[str, str], message: str
) -> None:
    with pytest.raises(Exception, match=message):
        spark.read.format("rocketmq-store").options(**options).load(str(sound)).collect()


def test_the_audit_finds_wrong_units_and_counts_deleted_topics(spark: SparkSession, tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", is_faulty=False)
    queue = store / "consumequeue" / TOPIC / "1" / f"{0:020}"
    raw = bytearray(queue.read_bytes())
    for offset in (10, 11):
        (position,) = struct.unpack_from(">q", raw, 20 * offset)
        struct.pack_into(">q", raw, 20 * offset, position + 1)
    queue.write_bytes(raw)
    report = audit_job.build(SparkEngine(spark), str(store))
    tables = {one.name: [tuple(row) for row in one.frame.collect()] for one in report.sections}
    assert sorted((row[1], row[2], row[3], row[5]) for row in tables["index"]) == [
        (1, 10, 11, "no unit in its consume queue"),
        (1, 10, 11, "unit without a record"),
    ]
    assert f"{TOPIC} queue 1 offsets 10 to 11: unit without a record" in (report.findings or [])
    assert tables["gaps"] == tables["order"] == tables["damaged"] == tables["deleted"] == []


def test_the_audit_names_repeated_offsets_and_disorder(spark: SparkSession, tmp_path: Path) -> None:
    from pocketmq.protocol.message.record import Record, encode_record

    log = b""
    for offset in (0, 1, 2, 5, 6, 1, 2, 3):
        record = Record(
            topic="T", queue_id=0, queue_offset=offset, position=len(log), body=b"x", properties=b""
        )
        log += encode_record(record)
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020}").write_bytes(log)
    report = audit_job.build(SparkEngine(spark), str(tmp_path))
    tables = {one.name: [tuple(row) for row in one.frame.collect()] for one in report.sections}
    assert tables["gaps"] == [("T", 0, "offset more than once", 1, 2), ("T", 0, "missing", 4, 1)]
    assert [row[:4] for row in tables["order"]] == [("T", 0, 1, 6)]
    assert tables["queues"][0][:6] == ("T", 0, 8, 0, 6, 6)
