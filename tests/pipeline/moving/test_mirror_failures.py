"""A mirror whose target does not answer, or that is killed: no message is missing, and none is sent twice."""

import contextlib
import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pocketmq.pipeline.errors import PipelineError
from pocketmq.pipeline.jobs.moving import mirror as mirror_module
from pocketmq.pipeline.jobs.moving import mirroring as mirroring_module
from pocketmq.pipeline.jobs.moving.offset_map import OffsetMap
from pocketmq.pipeline.tables.planning.positions import Queue
from pocketmq.testing import RocketMQ

from pipeline.brokers.cluster_sends import send_to
from pipeline.moving.mirrors import GROUP, copies, end_of, mirror_of, run, running, texts, two_clusters
from pipeline.topics import bodies, commit, filled, make, send
from waiting import wait_until

SEND_CODE = "SEND_BATCH_MESSAGE"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pocketmq.pipeline.jobs.moving.copies.BATCH_ROWS", 3)


@pytest.mark.parametrize("is_executed", [True, False])
def test_a_request_without_an_answer_is_not_stored_twice(
    rocketmq: RocketMQ, target: RocketMQ, quick: None, tmp_path: Path, is_executed: bool
) -> None:
    topic = filled(rocketmq, "unanswered", 40, queues=2)
    numbers = itertools.count(1)
    target.faults.disconnect(
        execute=is_executed, topic=topic, code=SEND_CODE, where=lambda _: next(numbers) % 4 == 0, times=None
    )
    path = tmp_path / "map"
    report = run(mirror_of(rocketmq, target, topic, map_file=str(path)))
    target.faults.clear()
    for queue_id in range(2):
        assert texts(target, topic, queue_id) == bodies(40, queue_id, 2)
    assert report.lead.endswith("were not sent twice.") == is_executed
    known = OffsetMap(path)
    for queue_id in range(2):
        queue = Queue(topic, "broker-a", queue_id)
        assert all(known.translated(queue, offset) == (queue, offset) for offset in range(20))


def test_what_was_in_flight_when_a_mirror_was_killed_is_found(
    rocketmq: RocketMQ, target: RocketMQ, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others write to the target between its copies, and a message has the id of the one before it."""
    topic = filled(rocketmq, "killed", 5)
    assert run(mirror_of(rocketmq, target, topic)).lead.startswith("5 messages")
    send(rocketmq, topic, range(5, 12))

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
    assert texts(target, topic) == [*bodies(12), "of another", "m12"]


@pytest.mark.parametrize("position", [0, 4, 11])
def test_a_source_that_lost_the_last_positions_makes_no_second_copies(
    rocketmq: RocketMQ, target: RocketMQ, monkeypatch: pytest.MonkeyPatch, position: int
) -> None:
    """A broker that ended without saving them. Two of its queues are copied to one, and each search is short."""
    monkeypatch.setattr(mirroring_module, "STEP", 3)
    monkeypatch.setattr("pocketmq.pipeline.jobs.moving.mirror_recovery.FIRST_LOOK", 2)
    topic = filled(rocketmq, f"older-{position}", 24, queues=2)
    make(target, topic)
    assert run(mirror_of(rocketmq, target, topic)).lead.startswith("24 messages")
    commit(rocketmq, topic, GROUP, {0: position, 1: position})
    rocketmq.send(topic, "m24", queue_id=0)
    report = run(mirror_of(rocketmq, target, topic))
    assert report.lead.startswith("1 messages copied")
    assert f"{2 * (12 - position)} more were there already" in report.lead
    copies = texts(target, topic)
    assert sorted(copies) == sorted(bodies(25))
    assert [text for text in copies if int(text[1:]) % 2 == 1] == bodies(24, 1, 2)


def test_a_queue_whose_broker_is_away_waits_and_the_others_go_on(
    quick: None, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirroring_module, "ROUND_MS", 300)
    with two_clusters(brokers=2) as (source, target):
        first, second = Queue("T", "b0", 0), Queue("T", "b1", 0)
        source.broker("b1").stop()
        with running(mirror_of(source, target, "T")) as reports:
            send_to(source, first, 0, 2)
            wait_until(lambda: end_of(target, first) == 2)
            source.broker("b1").start()
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
        send_to(source, second, 7, 1)
        report = run(mirror_of(source, target, "T"))
        assert report.lead.startswith("1 messages copied"), "a second run goes on where the first ended"
        assert copies(target) == [*bodies(10), *bodies(8)]


def test_a_mirror_of_once_gives_up_with_the_reason(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror_module, "WAIT_SECONDS", 0.1)
    with two_clusters() as (source, target):
        send_to(source, Queue("T", "b0", 0), 0, 1)
        target.faults.refuse(code=SEND_CODE, response="SYSTEM_BUSY", times=None)
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
    long = [text.ljust(4000) for text in bodies(2_400)]  # a request holds less than half of a queue
    for number, body in enumerate(long):
        rocketmq.send(topic, body, queue_id=number % 2)
    target.faults.delay(seconds=60, topic=topic, code=SEND_CODE, times=None)
    words = ["-n", rocketmq.namesrv_addr, "--to-namesrv", target.namesrv_addr, "--topics", topic]
    command = [
        sys.executable,
        "-m",
        "pocketmq.cli",
        "pipeline",
        "mirror",
        *words,
        "--map",
        str(tmp_path / "map"),
    ]
    for wanted in (800, 1_600):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            wait_until(lambda wanted=wanted: len(target.messages(topic)) >= wanted, timeout=30)
            process.kill()
        copied = len(target.messages(topic))
    target.faults.clear()
    report = run(mirror_of(rocketmq, target, topic, map_file=str(tmp_path / "map")))
    assert report.findings == []
    assert copied < len(long)
    for queue_id in range(2):
        assert texts(target, topic, queue_id) == long[queue_id::2]
