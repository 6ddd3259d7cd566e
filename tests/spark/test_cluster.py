"""On a master and two workers: reads, streams, writes; brokers restarted and away; an executor, a worker and a driver
killed."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pocketmq.pipeline.tables.brokers.broker_client import BrokerClient
from pocketmq.pipeline.tables.planning.positions import Queue
from pocketmq.testing import EmbeddedServer, RocketMQ, RocketMQCluster

from pipeline.brokers.cluster_sends import send_to
from pipeline.brokers.reading import options, read
from pipeline.topics import filled
from spark.drivers import Driver, driver, stream_column
from spark.standalone import Standalone, environment, standalone_cluster

HERE = Path(__file__).parent

pytestmark = [pytest.mark.on_demand, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def brokers() -> Iterator[RocketMQCluster]:
    with RocketMQCluster(brokers=2) as running:
        yield running


Drive = Callable[..., Driver]


@pytest.fixture
def drive(cluster: Standalone, tmp_path: Path) -> Iterator[Drive]:
    """drive(namesrv_addr, topic, way, count): a driver on the cluster. Its files lie in the test's folder."""
    drivers: list[Driver] = []

    def start(namesrv_addr: str, topic: str, way: str, count: int = 0) -> Driver:
        words = (cluster.url, namesrv_addr, topic, str(tmp_path), way, str(count))
        argv = [sys.executable, str(HERE / "cluster_driver.py"), *words]
        drivers.append(Driver(tmp_path / f"{way}.out", argv, cluster.env))
        return drivers[-1]

    yield start
    for one in drivers:
        one.kill()


def texts_in(folder: Path) -> list[str]:
    import pyarrow.parquet as pq

    files = [path for path in folder.glob("part-*.parquet") if path.stat().st_size]
    return sorted(text for path in files for text in pq.read_table(path).column("text").to_pylist())


def test_a_batch_is_read_by_both_workers(brokers: RocketMQCluster, drive: Drive) -> None:
    brokers.grow("batch", queues=2)
    send_to(brokers, Queue("batch", "b0", 0), 0, 20)
    send_to(brokers, Queue("batch", "b1", 1), 20, 20)
    found = drive(brokers.namesrv_addr, "batch", "read").found()
    assert found == {"bodies": sorted(f"m{number}" for number in range(40)), "executors": 2}


def test_rows_written_by_several_executors_keep_their_order_in_each_queue_of_each_broker(
    brokers: RocketMQCluster, drive: Drive
) -> None:
    brokers.grow("sink", queues=2)
    drive(brokers.namesrv_addr, "sink", "write", 200).found()
    with BrokerClient(brokers.namesrv_addr).closing() as client:
        written = [int(text) for text in read(client, options(brokers, "sink"))]
    assert sorted(written) == list(range(200))
    # Four tasks of 50 rows each: within a task, rows of one queue are in order.
    for residue in range(4):
        for task in range(4):
            of_task = [n for n in written if n % 4 == residue and n // 50 == task]
            assert of_task == sorted(of_task)


def test_a_stream_goes_on_after_a_restart_of_each_broker(
    brokers: RocketMQCluster, drive: Drive, tmp_path: Path
) -> None:
    brokers.grow("stream", queues=1)
    queues = [Queue("stream", "b0", 0), Queue("stream", "b1", 0)]
    for number, queue in enumerate(queues):
        send_to(brokers, queue, number * 10, 10)
    stream = drive(brokers.namesrv_addr, "stream", "stream", 40)
    stream.wait_for(r"^(ROWS 20)$")
    for name in ("b0", "b1"):
        brokers.broker(name).stop()
    time.sleep(1)  # some batches are planned while no broker has the topic
    for name in ("b0", "b1"):
        brokers.broker(name).start()
    for number, queue in enumerate(queues):
        send_to(brokers, queue, 20 + number * 10, 10)
    assert stream.found() == {"error": ""}
    assert stream_column(tmp_path / "rows") == sorted(f"m{number}" for number in range(40))


def test_a_slave_is_read_while_its_master_is_away(drive: Drive, tmp_path: Path) -> None:
    """In a batch, and in a stream that goes on when the master is back."""
    with RocketMQCluster(brokers=2, slaves=1) as brokers:
        brokers.grow("slaves", queues=1)
        queues = [Queue("slaves", "b0", 0), Queue("slaves", "b1", 0)]
        for number, queue in enumerate(queues):
            send_to(brokers, queue, number * 10, 10)
        brokers.wait_replicated()
        brokers.broker("b0").stop()
        found = drive(brokers.namesrv_addr, "slaves", "read").found()
        assert found["bodies"] == sorted(f"m{number}" for number in range(20))
        stream = drive(brokers.namesrv_addr, "slaves", "stream", 40)
        stream.wait_for(r"^(ROWS 20)$")
        send_to(brokers, queues[1], 30, 10)
        stream.wait_for(r"^(ROWS 30)$")
        brokers.broker("b0").start()
        send_to(brokers, queues[0], 20, 10)
        assert stream.found() == {"error": ""}
    assert stream_column(tmp_path / "rows") == sorted(f"m{number}" for number in range(40))


def test_a_killed_worker_costs_no_row_and_doubles_none(brokers: RocketMQCluster, tmp_path: Path) -> None:
    """With its executor; the other worker does what is left."""
    brokers.grow("worker", queues=1)
    send_to(brokers, Queue("worker", "b0", 0), 0, 24)
    (tmp_path / "cluster").mkdir()
    with standalone_cluster(tmp_path / "cluster", environment()) as cluster:
        words = [cluster.url, brokers.namesrv_addr, "worker", str(tmp_path), "slow", "0"]
        argv = [sys.executable, str(HERE / "cluster_driver.py"), *words]
        with driver(tmp_path / "slow.out", argv, cluster.env) as job:
            job.wait_until(lambda: list((tmp_path / "slow").rglob("*.parquet")))
            os.kill(cluster.workers[0], signal.SIGKILL)
            job.found()
    assert texts_in(tmp_path / "slow") == sorted(f"m{number}" for number in range(24))


def test_a_killed_executor_costs_no_row_and_doubles_none(
    brokers: RocketMQCluster, drive: Drive, cluster: Standalone, tmp_path: Path
) -> None:
    brokers.grow("slow", queues=1)
    send_to(brokers, Queue("slow", "b0", 0), 0, 24)
    job = drive(brokers.namesrv_addr, "slow", "slow")
    job.wait_for("^(BEGUN)$")
    job.wait_until(lambda: list((tmp_path / "slow").rglob("*.parquet")))
    victim = cluster.executors()[0]
    os.kill(victim, signal.SIGKILL)
    job.found()
    assert victim not in cluster.executors()
    assert texts_in(tmp_path / "slow") == sorted(f"m{number}" for number in range(24))


def test_a_killed_driver_costs_no_row_and_doubles_none(cluster: Standalone, tmp_path: Path) -> None:
    with EmbeddedServer() as server:
        rocketmq = RocketMQ(server)
        topic = filled(rocketmq, "killed", 200, queues=2, text="m{:03}")
        words = [sys.executable, str(HERE / "parquet_driver.py"), server.namesrv_addr, topic, str(tmp_path)]
        offsets = tmp_path / "checkpoint" / "offsets"
        with driver(tmp_path / "0.out", [*words, "forever", cluster.url], cluster.env) as first:
            first.wait_until((offsets / "1").exists)
        with driver(tmp_path / "1.out", [*words, "all", cluster.url], cluster.env) as second:
            assert second.end() == 0, second.output()[-4000:]
    assert stream_column(tmp_path / "rows") == [f"m{number:03}" for number in range(200)]
