"""On a master and two workers: reads, streams, writes, jobs; brokers restarted, an executor and a driver killed."""

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pocketmq.pipeline.errors import NoJavaError
from pocketmq.protocol.requests.topic import UpdateAndCreateTopic
from pocketmq.testing import EmbeddedServer, RocketMQ, RocketMQCluster

pytest.importorskip("pyspark")

from pocketmq.pipeline.planning.positions import Queue
from pocketmq.pipeline.session.java import find_java

from pipeline.brokers.cluster_sends import send_to
from spark.planted_store import write_store
from spark.standalone import LIMIT_SECONDS, Standalone, environment, standalone_cluster

HERE = Path(__file__).parent
FINDINGS = 1

pytestmark = [pytest.mark.on_demand, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    try:
        find_java()
    except NoJavaError as missing:
        pytest.skip(str(missing))
    with standalone_cluster(tmp_path_factory.mktemp("cluster"), environment()) as running:
        yield running


@pytest.fixture(scope="module")
def brokers() -> Iterator[RocketMQCluster]:
    with RocketMQCluster(brokers=2) as running:
        yield running


class Driver:
    """A driver in a process of its own; killed at the end at the latest."""

    def __init__(self, log: Path, *words: str, program: str = "cluster_driver.py") -> None:
        self._log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(HERE / program), *words],
                stdout=output,
                stderr=output,
                env=environment(),
                start_new_session=True,
            )

    def wait_for(self, pattern: str) -> str:
        """The first group of a pattern, once it is in what the driver printed."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while (found := re.search(pattern, self.output(), re.MULTILINE)) is None:
            assert self.process.poll() is None, self.output()[-4000:]
            assert time.monotonic() < deadline, self.output()[-4000:]
            time.sleep(0.05)
        return found[1]

    def found(self) -> dict[str, Any]:
        what: dict[str, Any] = json.loads(self.wait_for(r"^FOUND (.*)$"))
        self.process.wait(LIMIT_SECONDS)
        return what

    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


Drive = Callable[..., Driver]


@pytest.fixture
def drive(cluster: Standalone, tmp_path: Path) -> Iterator[Drive]:
    """drive(namesrv_addr, topic, way, count): a driver on the cluster. Its files lie in the test's folder."""
    drivers: list[Driver] = []

    def start(namesrv_addr: str, topic: str, way: str, count: int = 0) -> Driver:
        words = (cluster.url, namesrv_addr, topic, str(tmp_path), way, str(count))
        drivers.append(Driver(tmp_path / f"{way}.out", *words))
        return drivers[-1]

    yield start
    for driver in drivers:
        driver.kill()


def texts_in(folder: Path) -> list[str]:
    import pyarrow.parquet as pq

    files = [path for path in folder.glob("part-*.parquet") if path.stat().st_size]
    return sorted(text for path in files for text in pq.read_table(path).column("text").to_pylist())


def texts_of_stream(folder: Path) -> list[str]:
    """Only the files that the sink's log names: a batch that was interrupted leaves others behind."""
    import pyarrow.parquet as pq

    names = set()
    for log in (folder / "_spark_metadata").glob("[0-9]*"):
        for line in log.read_text().splitlines()[1:]:
            names.add(json.loads(line)["path"].removeprefix("file://"))
    return sorted(text for name in names for text in pq.read_table(name).column("text").to_pylist())


def test_a_batch_is_read_by_both_workers(brokers: RocketMQCluster, drive: Drive) -> None:
    brokers.grow("batch", queues=2)
    send_to(brokers, Queue("batch", "b0", 0), 0, 20)
    send_to(brokers, Queue("batch", "b1", 1), 20, 20)
    found = drive(brokers.namesrv_addr, "batch", "read").found()
    assert found == {"bodies": sorted(f"m{number}" for number in range(40)), "executors": 2}


def test_rows_written_by_several_executors_keep_their_order_in_each_queue_of_each_broker(
    brokers: RocketMQCluster, drive: Drive
) -> None:
    from pocketmq.pipeline.brokers.broker_client import BrokerClient

    from pipeline.brokers.cluster_sends import options_of
    from pipeline.brokers.reading import read

    brokers.grow("sink", queues=2)
    drive(brokers.namesrv_addr, "sink", "write", 200).found()
    with BrokerClient(brokers.namesrv_addr).closing() as client:
        written = [int(text) for text in read(client, options_of(brokers, "sink"))]
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
    driver = drive(brokers.namesrv_addr, "stream", "stream", 40)
    driver.wait_for(r"^(ROWS 20)$")
    for name in ("b0", "b1"):
        brokers.broker(name).stop()
    time.sleep(1)  # some batches are planned while no broker has the topic
    for name in ("b0", "b1"):
        brokers.broker(name).start()
    for number, queue in enumerate(queues):
        send_to(brokers, queue, 20 + number * 10, 10)
    assert driver.found() == {"error": ""}
    assert texts_of_stream(tmp_path / "rows") == sorted(f"m{number}" for number in range(40))


def test_a_killed_executor_costs_no_row_and_doubles_none(
    brokers: RocketMQCluster, drive: Drive, cluster: Standalone, tmp_path: Path
) -> None:
    brokers.grow("slow", queues=1)
    send_to(brokers, Queue("slow", "b0", 0), 0, 24)
    driver = drive(brokers.namesrv_addr, "slow", "slow")
    driver.wait_for("^(BEGUN)$")
    deadline = time.monotonic() + LIMIT_SECONDS
    while not list((tmp_path / "slow").rglob("*.parquet")):
        assert time.monotonic() < deadline, driver.output()[-4000:]
        time.sleep(0.05)
    victim = cluster.executors()[0]
    os.kill(victim, signal.SIGKILL)
    driver.found()
    assert victim not in cluster.executors()
    assert texts_in(tmp_path / "slow") == sorted(f"m{number}" for number in range(24))


def test_a_killed_driver_costs_no_row_and_doubles_none(cluster: Standalone, tmp_path: Path) -> None:
    with EmbeddedServer() as server:
        rocketmq = RocketMQ(server)
        topic = rocketmq.topic("killed", queues=2)
        for number in range(200):
            rocketmq.send(topic, f"m{number:03}", queue_id=number % 2)
        words = (server.namesrv_addr, topic, str(tmp_path))
        driver = Driver(tmp_path / "0.out", *words, "forever", cluster.url, program="parquet_driver.py")
        try:
            deadline = time.monotonic() + LIMIT_SECONDS
            while not (tmp_path / "checkpoint" / "offsets" / "1").exists():
                assert driver.process.poll() is None, driver.output()[-4000:]
                assert time.monotonic() < deadline, driver.output()[-4000:]
                time.sleep(0.005)
        finally:
            driver.kill()
        driver = Driver(tmp_path / "1.out", *words, "all", cluster.url, program="parquet_driver.py")
        try:
            assert driver.process.wait(LIMIT_SECONDS) == 0, driver.output()[-4000:]
        finally:
            driver.kill()
    assert texts_of_stream(tmp_path / "rows") == [f"m{number:03}" for number in range(200)]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A store with planted faults, a broker with a journal and a dead letter, and another broker."""
    folder = tmp_path_factory.mktemp("inputs")
    store, journal = write_store(folder / "store"), folder / "journal"
    with EmbeddedServer(journal=journal) as server, EmbeddedServer() as other:
        rocketmq = RocketMQ(server)
        topic = rocketmq.topic("T", queues=2)
        rocketmq.topic("T2", queues=2)
        rocketmq.topic("RMQ_SYS_TRACE_TOPIC")
        for number in range(10):
            rocketmq.send(topic, f'{{"id": {number}}}', queue_id=number % 2, keys=f"k{number}")
        rocketmq.server.request(
            UpdateAndCreateTopic(
                topic="%DLQ%billing", default_topic="TBW102", read_queue_nums=1, write_queue_nums=1, perm=6,
                topic_filter_type="SINGLE_TAG",
            )
        )  # fmt: skip
        rocketmq.send("%DLQ%billing", "dead", properties={"RETRY_TOPIC": "T"})
        yield {
            "store": str(store),
            "journal": str(journal),
            "address": server.namesrv_addr,
            "other": other.namesrv_addr,
            "out": str(folder / "out"),
        }


@pytest.mark.parametrize(
    ("words", "code", "printed"),
    [
        ("audit --store {store}", FINDINGS, "bad crc"),
        ("duplicates --store {store}", FINDINGS, "stored twice"),
        ("stats --store {store}", 0, "Rows:"),
        ("stats -n {address} --topics T --keys 3", 0, "k0"),
        ("find --store {store} --text 'body 7'", FINDINGS, "k7"),
        ("sql 'select count(*) as n from messages' --store {store} --damaged", 0, "80"),
        ("latest -n {address} --topics T", 0, "k9"),
        ("compare {address} {address} --topics T", 0, "Nothing found."),
        ("compare {store} {address} --topics T", FINDINGS, "10 messages missing in"),
        ("dlq -n {address}", FINDINGS, "1 dead message of T"),
        ("lag -n {address} --groups G --topics T", 0, "Rows:"),
        ("mirror -n {address} --to-namesrv {other} --topics T --once", 0, "10 messages copied"),
        (
            "ingest -n {address} --topics T --to {out}/t --checkpoint {out}/c --decode json --schema 'id int' "
            "--bad {out}/bad",
            0,
            "10 messages of T written",
        ),
        ("latency --journal {journal}", 0, "Sent, never pulled"),
        ("export --store {store} --to {out}/export", 0, "Rows:"),
        ("replay -n {address} --topics T --to T2", 0, "10 messages sent to T2"),
        ("latency -n {address}", None, "Rows:"),
        ("behaviour {journal}", None, "Rows:"),
    ],
)
def test_each_job_runs_on_the_cluster(
    cluster: Standalone, inputs: dict[str, str], words: str, code: int | None, printed: str
) -> None:
    program = "from pocketmq.cli.main import main; main()"
    argv = [sys.executable, "-c", program, "pipeline", *shlex.split(words.format(**inputs))]
    argv += ["--master", cluster.url, "--conf", "spark.executor.memory=512m"]
    argv += ["--conf", "spark.sql.shuffle.partitions=2"]
    ran = subprocess.run(
        argv, capture_output=True, text=True, env=environment(), check=False, timeout=LIMIT_SECONDS
    )
    assert ran.returncode in ((0, FINDINGS) if code is None else (code,)), ran.stdout + ran.stderr[-3000:]
    assert printed in ran.stdout
