"""Jobs that write, on a cluster on which executors and drivers are killed: no row lost, none doubled in a table."""

import contextlib
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pocketmq.testing import EmbeddedServer, RocketMQ

from spark.drivers import JOB, LIMIT_SECONDS, Driver, stream_column, stream_files
from spark.standalone import Standalone
from waiting import wait_until

BATCH_MESSAGES = 20
QUEUES = 3
BAD_ONE_OF = 10
"""So many messages have one that cannot be decoded."""

pytestmark = [pytest.mark.on_demand, pytest.mark.timeout(900)]


@pytest.fixture
def rocketmq() -> Iterator[RocketMQ]:
    """A server of the test's own."""
    with EmbeddedServer() as server:
        yield RocketMQ(server)


Start = Callable[..., Driver]


@pytest.fixture
def start(cluster: Standalone, tmp_path: Path) -> Iterator[Start]:
    """start(words...): a job on the cluster, in a process group of its own. It is killed at the end at the latest."""
    started: list[Driver] = []

    def run(*words: str) -> Driver:
        argv = [sys.executable, "-c", JOB, "pipeline", *words, "--master", cluster.url]
        started.append(Driver(tmp_path / f"{len(started)}.out", argv, cluster.env))
        return started[-1]

    yield run
    for one in started:
        one.kill()


def send(rocketmq: RocketMQ, topic: str, first: int, count: int) -> None:
    for number in range(first, first + count):
        body = "not json" if number % BAD_ONE_OF == 0 else f'{{"id": {number}}}'
        rocketmq.send(topic, body, queue_id=number % QUEUES, keys=f"k{number:04}")


def keys(first: int, stop: int, *, are_bad: bool) -> list[str]:
    return [f"k{number:04}" for number in range(first, stop) if (number % BAD_ONE_OF == 0) == are_bad]


def ingest(rocketmq: RocketMQ, topic: str, folder: Path, *more: str) -> tuple[str, ...]:
    words = ("ingest", "-n", rocketmq.namesrv_addr, "--topics", topic, "--to", str(folder / "table"))
    words += ("--checkpoint", str(folder / "checkpoint"), "--batch-messages", str(BATCH_MESSAGES))
    return (*words, "--decode", "json", "--schema", "id int", "--bad", str(folder / "bad"), *more)


def last_batch(folder: Path, log: str) -> int:
    """The last batch in a log of the checkpoint; -1 before the first."""
    batches = folder / "checkpoint" / "table" / log
    with contextlib.suppress(FileNotFoundError):
        return max((int(path.name) for path in batches.iterdir() if path.name.isdigit()), default=-1)
    return -1


def committed(folder: Path) -> int:
    return last_batch(folder, "commits")


def is_within_batch(folder: Path) -> bool:
    """Whether a batch has begun and is not committed."""
    return last_batch(folder, "offsets") > committed(folder)


@pytest.mark.usefixtures("ctrl_c_as_on_a_terminal")
def test_a_continuous_ingest_outlives_killed_executors_and_ends_at_ctrl_c(
    rocketmq: RocketMQ, start: Start, cluster: Standalone, tmp_path: Path
) -> None:
    topic = rocketmq.topic("kept", queues=QUEUES)
    send(rocketmq, topic, 0, 100)
    job = start(*ingest(rocketmq, topic, tmp_path, "--every", "100ms"))
    job.wait_until(lambda: committed(tmp_path) >= 0)
    sent = 100
    for number in range(2):
        victim = cluster.executors()[number]
        os.kill(victim, signal.SIGKILL)
        send(rocketmq, topic, sent, 50)
        sent += 50
        before = committed(tmp_path)
        job.wait_until(lambda before=before: committed(tmp_path) > before + 1)
        assert victim not in cluster.executors()
    job.wait_until(
        lambda: len(stream_column(tmp_path / "table", "keys")) == len(keys(0, sent, are_bad=False))
    )
    job.wait_until(lambda: len(stream_column(tmp_path / "bad", "keys")) == len(keys(0, sent, are_bad=True)))
    job.signal(signal.SIGINT)
    assert job.end() == 1, job.output()[-4000:]  # there are messages that cannot be decoded
    assert f"{len(keys(0, sent, are_bad=False))} messages of {topic} written" in job.output()
    assert "Stopped: the next run with this checkpoint goes on there." in job.output()
    assert "Traceback" not in job.output()
    assert stream_column(tmp_path / "table", "keys") == keys(0, sent, are_bad=False)
    assert stream_column(tmp_path / "bad", "keys") == keys(0, sent, are_bad=True)


def test_an_ingest_whose_driver_is_killed_continues_from_its_checkpoint(
    rocketmq: RocketMQ, start: Start, cluster: Standalone, tmp_path: Path
) -> None:
    topic = rocketmq.topic("broken", queues=QUEUES)
    sent = unfinished = 0
    for _ in range(3):
        send(rocketmq, topic, sent, 100)
        sent += 100
        before = committed(tmp_path)
        job = start(*ingest(rocketmq, topic, tmp_path, "--every", "10ms"))
        job.wait_until(lambda before=before: committed(tmp_path) > before and is_within_batch(tmp_path))
        job.kill()
        unfinished += is_within_batch(tmp_path)
        wait_until(
            lambda: not cluster.executors(), timeout=LIMIT_SECONDS, what="executors of a killed driver end"
        )
    job = start(*ingest(rocketmq, topic, tmp_path))
    assert job.end() == 1, job.output()[-4000:]
    assert stream_column(tmp_path / "table", "keys") == keys(0, sent, are_bad=False)
    assert stream_column(tmp_path / "bad", "keys") == keys(0, sent, are_bad=True)
    assert unfinished, "no kill came between a batch's offsets and its commit: nothing was put to the test"
    assert stream_files(tmp_path / "table")


def test_a_replay_sends_every_message_although_an_executor_is_killed(
    rocketmq: RocketMQ, start: Start, cluster: Standalone
) -> None:
    source, target = rocketmq.topic("source", queues=2), rocketmq.topic("target", queues=2)
    for number in range(120):
        rocketmq.send(source, f"m{number:03}", queue_id=number % 2)
    words = ("-n", rocketmq.namesrv_addr, "--topics", source, "--to", target, "--rows-per-second", "10")
    job = start("replay", *words)
    job.wait_until(lambda: len(rocketmq.messages(target)) >= 10)
    victim = cluster.executors()[0]
    os.kill(victim, signal.SIGKILL)
    assert job.end() == 0, job.output()[-4000:]
    copies = Counter(one.text for one in rocketmq.messages(target))
    assert sorted(copies) == [f"m{number:03}" for number in range(120)]
    assert max(copies.values()) <= 2, "a task that began again sends its messages once more"
    assert f"120 messages sent to {target}" in job.output()
    origins = {one.properties["replayOf"] for one in rocketmq.messages(target)}
    assert len(origins) == 120


def test_a_replay_with_a_checkpoint_continues_after_its_driver_is_killed(
    rocketmq: RocketMQ, start: Start, tmp_path: Path
) -> None:
    source, target = rocketmq.topic("source", queues=2), rocketmq.topic("target", queues=2)
    for number in range(60):
        rocketmq.send(source, f"m{number:03}", queue_id=number % 2)
    words = ("replay", "-n", rocketmq.namesrv_addr, "--topics", source, "--to", target)
    words += ("--checkpoint", str(tmp_path / "replay"))
    first = start(*words, "--rows-per-second", "10")
    first.wait_until(lambda: len(rocketmq.messages(target)) >= 10)
    first.kill()
    before = {one.message_id for one in rocketmq.messages(target)}
    second = start(*words)
    assert second.end() == 0, second.output()[-4000:]
    copies = rocketmq.messages(target)
    assert sorted({one.text for one in copies}) == [f"m{number:03}" for number in range(60)]
    # What was sent twice has the same id twice, so consumers recognise it.
    assert len({one.message_id for one in copies}) == 60
    assert before <= {one.message_id for one in copies}


def test_an_export_and_its_report_survive_a_killed_executor(
    rocketmq: RocketMQ, start: Start, cluster: Standalone, tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    topic = rocketmq.topic("exported", queues=QUEUES)
    send(rocketmq, topic, 0, 300)
    job = start("export", "-n", rocketmq.namesrv_addr, "--topics", topic, "--to", str(tmp_path / "out"),
                "--json-file", str(tmp_path / "report.json"))  # fmt: skip
    job.wait_until(lambda: len(cluster.executors()) == 2)
    os.kill(cluster.executors()[1], signal.SIGKILL)
    assert job.end() == 0, job.output()[-4000:]
    found = pq.read_table(tmp_path / "out").column("keys").to_pylist()
    assert sorted(found) == [f"k{number:04}" for number in range(300)]
    (row,) = json.loads((tmp_path / "report.json").read_text())["rows"]
    assert row["count"] == 300
