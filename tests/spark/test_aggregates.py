"""Runs and statistics of a store as tables of Spark."""

from pathlib import Path

import pytest

from spark.planted_store import COUNT, TOPIC, write_store

pytest.importorskip("pyspark")

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
