"""Store directories as data frames of Spark: their columns, and as many tasks as a session runs at once."""

import pytest
from pocketmq.pipeline.spark.session.session import register
from pocketmq.pipeline.spark.sources.store_source import StoreSource
from pocketmq.pipeline.tables.planning.spark_processes import PARALLELISM
from pocketmq.pipeline.tables.records.columns import LEAN_COLUMNS
from pyspark.sql import SparkSession

from pipeline.tables.stores import write_store

COUNT = 40


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_store(tmp_path_factory.mktemp("store"), COUNT))


def test_the_default_columns_are_lean_and_tell_damage_if_it_is_reported(
    spark: SparkSession, store: str
) -> None:
    reader = spark.read.format("rocketmq-store")
    assert tuple(reader.load(store).columns) == LEAN_COLUMNS
    reported = reader.option("onCorrupt", "report").load(store).columns
    assert set(reported) == {*LEAN_COLUMNS, "physicalOffset", "file", "status"}


def test_topics_and_columns_can_be_chosen(spark: SparkSession, store: str) -> None:
    frame = spark.read.format("rocketmq-store").schema("keys string, queueId int").option("topics", "Bills")
    rows = frame.load(store).collect()
    assert sorted(rows) == sorted((f"k{number} all", number % 4) for number in range(0, COUNT, 10))


def test_a_small_store_has_as_many_tasks_as_the_session_runs_at_once(spark: SparkSession, store: str) -> None:
    """Reads are planned in processes without a Spark context; `register` hands the number over."""
    environment = spark.sparkContext.environment
    assert environment[PARALLELISM] == "2", "as in local[2]"
    environment[PARALLELISM] = "5"
    try:
        spark.dataSource.register(StoreSource)
        # The end of a log that no queue knows yet may be a task of its own.
        assert spark.read.format("rocketmq-store").load(store).rdd.getNumPartitions() in (5, 6)
    finally:
        register(spark)
    assert spark.read.format("rocketmq-store").load(store).rdd.getNumPartitions() in (2, 3)
