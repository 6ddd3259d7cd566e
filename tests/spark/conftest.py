"""One Spark session for all tests of this folder; they are skipped, with one clear line, without Spark or Java.

`local[2,3]`: two cores, and a task may fail twice before its job does. Tests with their own driver or cluster, and
the longest ones, are marked `on_demand` and run only with POCKETMQ_SPARK_ALL=1 (`make spark-all`).
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pocketmq.testing import EmbeddedServer, RocketMQ

from extras import pytest_pycollect_makemodule as pytest_pycollect_makemodule
from pipeline.topics import filled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark.standalone import Standalone

HERE = Path(__file__).parent
TEST_TIMEOUT_S = 180
EVERYTHING = bool(os.environ.get("POCKETMQ_SPARK_ALL"))
ADDRESS = "rocketmq.namesrv.addr"
IN_EACH_STORE = 50


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = []
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("spark")
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(TEST_TIMEOUT_S))
            if item.get_closest_marker("on_demand") and not EVERYTHING:
                left_out.append(item)
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    from pocketmq.pipeline.spark.session.session import pocketmq_session

    from spark.drivers import need_java

    need_java()
    session = pocketmq_session(
        "pocketmq-tests",
        master="local[2,3]",
        optimize_for_startup=True,
        settings={"spark.sql.shuffle.partitions": "2"},
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Standalone]":
    """A master and two workers of one core each, for all tests on a cluster."""
    from spark.drivers import need_java
    from spark.standalone import environment, standalone_cluster

    need_java()
    with standalone_cluster(tmp_path_factory.mktemp("cluster"), environment()) as running:
        yield running


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two brokers' stores, each with several log files of a00, a01, ... and b00, b01, ..., and their journals."""
    folder = tmp_path_factory.mktemp("stores")
    for name in "ab":
        settings = {"mappedFileSizeCommitLog": 4096, "brokerName": f"broker-{name}"}
        with EmbeddedServer(settings, store=folder / name, journal=folder / f"journal-{name}") as server:
            filled(RocketMQ(server), "T", IN_EACH_STORE, queues=2, text=name + "{:02}")
    return {name: folder / name for name in ("a", "b", "journal-a", "journal-b")}


@pytest.fixture(scope="module")
def job_inputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What the jobs of `cluster_jobs.py` read."""
    from spark.cluster_jobs import write_inputs

    with write_inputs(tmp_path_factory.mktemp("inputs")) as made:
        yield made


Reads = Callable[..., "DataFrame"]


@pytest.fixture
def read(spark: "SparkSession", rocketmq: RocketMQ) -> Reads:
    """read(topic, schema=None, **options): a batch read from the session's server."""

    def load(topic: str, schema: str | None = None, **options: Any) -> "DataFrame":
        reader = (
            spark.read.format("rocketmq").option(ADDRESS, rocketmq.namesrv_addr).option("subscribe", topic)
        )
        if schema is not None:
            reader = reader.schema(schema)
        return reader.options(**options).load()

    return load


@pytest.fixture
def stream(spark: "SparkSession", rocketmq: RocketMQ) -> Reads:
    """stream(topic, **options): a streaming read, from the first message unless an option says otherwise."""

    def load(topic: str, **options: Any) -> "DataFrame":
        chosen = {
            "startingOffsets": "earliest",
            "subscribe": topic,
            ADDRESS: rocketmq.namesrv_addr,
            **options,
        }
        return spark.readStream.format("rocketmq").options(**chosen).load()

    return load


def bodies(frame: "DataFrame") -> list[str]:
    """The bodies as text, sorted."""
    return sorted(bytes(row.body).decode() for row in frame.select("body").collect())
