"""Store directories as data frames: every message, whatever the splits; queues and offset tables beside them."""

from pathlib import Path

import pytest
from pocketmq.testing import EmbeddedServer, RocketMQ

pytest.importorskip("pyspark")

from pocketmq.pipeline.tables.records.columns import LEAN_COLUMNS
from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with 40 messages in 2 topics."""
    folder = tmp_path_factory.mktemp("store")
    with EmbeddedServer(store=folder) as server:
        one = RocketMQ(server)
        for name in ("A", "B"):
            topic = one.topic(name, queues=2)
            for number in range(20):
                one.send(topic, f"{name}{number:02}", keys=f"k{number}", queue_id=number % 2)
    return folder


ALL = [f"{name}{number:02}" for name in "AB" for number in range(20)]


@pytest.mark.parametrize("options", [{"splitBytes": "4000"}, {"driver": "consumequeue"}])
def test_every_message_is_read_once_by_the_log_and_by_the_queues(
    spark: SparkSession, store: Path, options: dict[str, str]
) -> None:
    frame = spark.read.format("rocketmq-store").options(**options, columns="all").load(str(store))
    rows = frame.where("topic in ('A', 'B')").select("body", "status").collect()
    assert sorted(bytes(row.body).decode() for row in rows) == ALL
    assert {row.status for row in rows} == {"ok"}


def test_the_default_columns_are_lean_and_tell_damage_if_it_is_reported(
    spark: SparkSession, store: Path
) -> None:
    reader = spark.read.format("rocketmq-store")
    assert tuple(reader.load(str(store)).columns) == LEAN_COLUMNS
    reported = reader.option("onCorrupt", "report").load(str(store)).columns
    assert set(reported) == {*LEAN_COLUMNS, "physicalOffset", "file", "status"}


def test_topics_and_columns_can_be_chosen(spark: SparkSession, store: Path) -> None:
    frame = (
        spark.read.format("rocketmq-store").schema("keys string, queueOffset bigint").option("topics", "A")
    )
    rows = frame.load(str(store)).collect()
    assert sorted(rows) == sorted((f"k{number}", number // 2) for number in range(20))


def test_queues_point_at_the_messages(spark: SparkSession, store: Path) -> None:
    messages = (
        spark.read.format("rocketmq-store").option("columns", "all").load(str(store)).where("topic = 'B'")
    )
    entries = (
        spark.read.format("rocketmq-store")
        .option("table", "consumequeue")
        .option("topics", "B")
        .load(str(store))
    )
    wanted = messages.selectExpr("topic", "queueId", "queueOffset", "physicalOffset", "storeSize as size")
    assert sorted(entries.drop("tagsCode").collect()) == sorted(wanted.collect())


def test_a_small_store_has_as_many_tasks_as_the_session_runs_at_once(
    spark: SparkSession, store: Path
) -> None:
    """Reads are planned in processes without a Spark context; `register` hands the number over."""
    from pocketmq.pipeline.spark.session.session import register
    from pocketmq.pipeline.spark.sources.store_source import StoreSource
    from pocketmq.pipeline.tables.planning.spark_processes import PARALLELISM

    environment = spark.sparkContext.environment
    assert environment[PARALLELISM] == "2", "as in local[2]"
    environment[PARALLELISM] = "5"
    try:
        spark.dataSource.register(StoreSource)
        # The end of a log that no queue knows yet may be a task of its own.
        assert spark.read.format("rocketmq-store").load(str(store)).rdd.getNumPartitions() in (5, 6)
    finally:
        register(spark)
    assert spark.read.format("rocketmq-store").load(str(store)).rdd.getNumPartitions() in (2, 3)
