"""A mirror whose target does not answer, or that is killed: no message is missing, and none is sent twice."""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="the pipeline's extra is not installed")

from pocketmq.pipeline.errors import PipelineError
from pocketmq.pipeline.jobs.moving import mirror as mirror_module
from pocketmq.pipeline.jobs.moving import mirroring as mirroring_module
from pocketmq.pipeline.jobs.moving.offset_map import OffsetMap
from pocketmq.pipeline.tables.planning.positions import Queue
from pocketmq.protocol.requests.offset import UpdateConsumerOffset
from pocketmq.testing import RocketMQ, RocketMQCluster

from pipeline.brokers.cluster_sends import send_to
from pipeline.moving.mirrors import make, mirror_of, run, running
from waiting import wait_until

SEND_CODES = ("SEND_BATCH_MESSAGE", "SEND_MESSAGE_V2")


def texts(server: RocketMQ, topic: str, queue_id: int) -> list[str]:
    return [one.text for one in server.messages(topic) if one.queue_id == queue_id]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror_module, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr("pocketmq.pipeline.jobs.moving.copies.BATCH_ROWS", 3)


@pytest.mark.parametrize("is_executed", [True, False])
def test_a_request_without_an_answer_is_not_stored_twice(
    rocketmq: RocketMQ, target: RocketMQ, quick: None, tmp_path: Path, is_executed: bool
) -> None:
    topic = rocketmq.topic("unanswered", queues=2)
    for number in range(40):
        rocketmq.send(topic, f"m{number}", queue_id=number % 2)
    numbers = itertools.count(1)
    target.faults.disconnect(
        execute=is_executed,
        topic=topic,
        code=SEND_CODES[0],
        where=lambda _: next(numbers) % 4 == 0,
        times=None,
    )
    path = tmp_path / "map"
    report = run(mirror_of(rocketmq, target, topic, map_file=str(path)))
    target.faults.clear()
    for queue_id in range(2):
        assert texts(target, topic, queue_id) == [f"m{number}" for number in range(queue_id, 40, 2)]
    assert report.lead.endswith("were not sent twice.") == is_executed
    known = OffsetMap(path)
    queues = [Queue(topic, "broker-a", queue_id) for queue_id in range(2)]
    for queue in queues:
        assert [known.translated(queue, offset) for offset in range(20)] == [
            (queue, offset) for offset in range(20)
        ]


def test_what_was_in_flight_when_a_mirror_was_killed_is_found(
    rocketmq: RocketMQ, target: RocketMQ, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others write to the target between its copies, and a message has the id of the one before it."""
    topic = rocketmq.topic("killed", queues=1)
    for number in range(5):
        rocketmq.send(topic, f"m{number}", queue_id=0)
    assert run(mirror_of(rocketmq, target, topic)).lead.startswith("5 messages")
    for number in range(5, 12):
        rocketmq.send(topic, f"m{number}", queue_id=0)

    class Killed(Exception):
        pass

    def die(self: Any, *_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch, contextlib.suppress(Killed):
        patch.setattr("pocketmq.pipeline.jobs.moving.mirror_positions.MirrorPositions.commit", die)
        run(mirror_of(rocketmq, target, topic))
    target.send(topic, "of another", queue_id=0)
    rocketmq.send(topic, "m12", queue_id=0)
    report = run(mirror_of(rocketmq, target, topic))
    assert report.lead.startswith("1 messages copied")
    assert report.lead.endswith("7 more were there already: they were not sent twice.")
    assert report.findings == []
    wanted = [f"m{number}" for number in range(13)]
    assert texts(target, topic, 0) == [*wanted[:12], "of another", "m12"]


@pytest.mark.parametrize("position", [0, 4, 11])
def test_a_source_that_lost_the_last_positions_makes_no_second_copies(
    rocketmq: RocketMQ, target: RocketMQ, monkeypatch: pytest.MonkeyPatch, position: int
) -> None:
    """A broker that ended without saving them. Two of its queues are copied to one, and each search is short."""
    monkeypatch.setattr(mirroring_module, "STEP", 3)
    monkeypatch.setattr("pocketmq.pipeline.jobs.moving.mirror_recovery.FIRST_LOOK", 2)
    topic = rocketmq.topic(f"older-{position}", queues=2)
    make(target, topic)
    for number in range(24):
        rocketmq.send(topic, f"m{number}", queue_id=number % 2)
    assert run(mirror_of(rocketmq, target, topic)).lead.startswith("24 messages")
    for queue_id in range(2):
        rocketmq.server.request(
            UpdateConsumerOffset(
                consumer_group="pocketmq-mirror-default",
                topic=topic,
                queue_id=queue_id,
                commit_offset=position,
            )
        )
    rocketmq.send(topic, "m24", queue_id=0)
    report = run(mirror_of(rocketmq, target, topic))
    assert report.lead.startswith("1 messages copied")
    assert f"{2 * (12 - position)} more were there already" in report.lead
    copies = texts(target, topic, 0)
    assert sorted(copies) == sorted(f"m{number}" for number in range(25))
    assert [text for text in copies if int(text[1:]) % 2 == 1] == [f"m{n}" for n in range(1, 24, 2)]


def test_a_queue_whose_broker_is_away_waits_and_the_others_go_on(
    quick: None, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirroring_module, "ROUND_MS", 300)
    with RocketMQCluster(brokers=2) as source, RocketMQCluster(brokers=2) as target:
        for cluster in (source, target):
            cluster.grow("T", queues=1)
        first, second = Queue("T", "b0", 0), Queue("T", "b1", 0)
        with running(mirror_of(source, target, "T")) as reports:
            send_to(source, first, 0, 2)
            wait_until(lambda: end_of(target, first) == 2)
            target.broker("b0").kill()
            send_to(source, first, 2, 5)
            send_to(source, second, 0, 4)
            wait_until(lambda: end_of(target, second) == 4, "the other broker's queue goes on")
            wait_until(lambda: "broker b0 of the target does not answer" in caplog.text)
            target.broker("b0").start()
            wait_until(lambda: end_of(target, first) == 7)
            source.broker("b1").stop()
            send_to(source, first, 7, 3)
            wait_until(lambda: end_of(target, first) == 10)
            source.broker("b1").start()
            send_to(source, second, 4, 3)
            wait_until(lambda: end_of(target, second) == 7)
        (report,) = reports
        assert report.lead.startswith("17 messages copied")
        assert "0 waiting" in report.lead
        assert "broker b0 of the target answers again" in caplog.text


def end_of(cluster: RocketMQCluster, queue: Queue) -> int:
    broker = cluster.broker(queue.broker_name)
    if not broker.is_running:
        return -1
    return cluster.call(lambda: broker.broker.store.max_offset(queue.topic, queue.queue_id))


def test_a_mirror_of_once_gives_up_with_the_reason(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror_module, "WAIT_SECONDS", 0.1)
    with RocketMQCluster(brokers=1) as source, RocketMQCluster(brokers=1) as target:
        for cluster in (source, target):
            cluster.grow("T", queues=1)
        send_to(source, Queue("T", "b0", 0), 0, 1)
        target.faults.refuse(code=SEND_CODES[0], response="SYSTEM_BUSY", times=None)
        with pytest.raises(
            PipelineError,
            match=r"broker b0 of the target does not answer: .* code 2 .*, given up after 0.1 s",
        ):
            run(mirror_of(source, target, "T"))


@pytest.mark.slow
def test_a_killed_mirror_loses_and_repeats_nothing(
    rocketmq: RocketMQ, target: RocketMQ, tmp_path: Path
) -> None:
    """Killed while the first requests of all queues are stored and not answered, and again."""
    topic = rocketmq.topic("killed-for-real", queues=2)
    bodies = [
        f"m{number}".ljust(4000) for number in range(2_400)
    ]  # a request holds less than half of a queue
    for number, body in enumerate(bodies):
        rocketmq.send(topic, body, queue_id=number % 2)
    target.faults.delay(seconds=60, topic=topic, code=SEND_CODES[0], times=None)
    words = ["-n", rocketmq.namesrv_addr, "--to-namesrv", target.namesrv_addr, "--topics", topic]
    command = [
        sys.executable,
        "-m",
        "pocketmq.cli",
        *("pipeline", "mirror"),
        *words,
        "--map",
        str(tmp_path / "map"),
    ]
    copied = 0
    for wanted in (800, 1_600):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            wait_until(lambda wanted=wanted: len(target.messages(topic)) >= wanted, timeout=30)  # type: ignore[misc]
            os.kill(process.pid, signal.SIGKILL)
        copied = len(target.messages(topic))
    target.faults.clear()
    report = run(mirror_of(rocketmq, target, topic, map_file=str(tmp_path / "map")))
    assert report.findings == []
    assert copied < len(bodies)
    for queue_id in range(2):
        assert texts(target, topic, queue_id) == bodies[queue_id::2]
