"""A mirror whose target is made otherwise: fewer queues, no right to write, smaller messages, or away in the middle."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("pyarrow", reason="the pipeline's extra is not installed")

from pocketmq.cli.pipeline.command import pipeline
from pocketmq.pipeline.jobs.moving import mirror as mirror_module
from pocketmq.pipeline.jobs.moving import mirroring as mirroring_module
from pocketmq.pipeline.tables.brokers.broker_client import BrokerClient
from pocketmq.pipeline.tables.planning.positions import Queue
from pocketmq.pipeline.tables.planning.ranges import Range
from pocketmq.testing import EmbeddedServer, RocketMQ, RocketMQCluster

from pipeline.brokers.cluster_sends import options_of, send_to
from pipeline.brokers.reading import read
from pipeline.moving.mirrors import make, mirror_of, run
from waiting import wait_until


@pytest.fixture(scope="module")
def target() -> Iterator[RocketMQ]:
    with EmbeddedServer({"maxMessageSize": 20_000}) as server:
        yield RocketMQ(server)


def command(source: RocketMQ, target: RocketMQ, topic: str) -> tuple[int, str]:
    words = ["-n", source.namesrv_addr, "--to-namesrv", target.namesrv_addr, "--topics", topic, "--once"]
    ran = CliRunner().invoke(pipeline, ["mirror", *words, "--quiet"])
    return ran.exit_code, ran.output


@pytest.mark.parametrize(("readable", "writable"), [(1, 1), (2, 2), (4, 2), (8, 8)])
def test_each_queue_keeps_its_order_in_a_topic_with_another_number_of_queues(
    rocketmq: RocketMQ, target: RocketMQ, readable: int, writable: int
) -> None:
    topic = rocketmq.topic(f"narrow-{readable}-{writable}", queues=4)
    make(target, topic, readable=readable, writable=writable)
    for number in range(40):
        rocketmq.send(topic, f"m{number}", queue_id=number % 4)
    assert command(rocketmq, target, topic) == (0, "")
    copies = target.messages(topic)
    assert len(copies) == 40
    for queue_id in range(4):
        of_queue = [(one.queue_id, one.text) for one in copies if int(one.text[1:]) % 4 == queue_id]
        assert [text for _, text in of_queue] == [f"m{number}" for number in range(queue_id, 40, 4)]
        assert len({queue for queue, _ in of_queue}) == 1


def test_a_topic_that_must_not_be_written_to_is_one_line(rocketmq: RocketMQ, target: RocketMQ) -> None:
    topic = rocketmq.topic("locked", queues=1)
    make(target, topic, readable=1, writable=1, perm=4)
    rocketmq.send(topic, "m0", queue_id=0)
    line = f"pocketmq: topic {topic} of the target can only be read: its permission must include writing\n"
    assert command(rocketmq, target, topic) == (2, line)


def test_queues_that_are_no_longer_written_to_get_no_copies(rocketmq: RocketMQ, target: RocketMQ) -> None:
    topic = rocketmq.topic("shrinking", queues=4)
    make(target, topic, readable=4, writable=2)
    for number in range(8):
        rocketmq.send(topic, f"m{number}", queue_id=number % 4)
    assert command(rocketmq, target, topic) == (0, "")
    assert {one.queue_id for one in target.messages(topic)} <= {0, 1}


def test_requests_become_smaller_for_a_target_that_takes_less(rocketmq: RocketMQ, target: RocketMQ) -> None:
    topic = rocketmq.topic("smaller", queues=2)
    sizes = [10, *range(5_000, 5_040), 19_000, 1]
    for queue_id in range(2):
        for size in sizes:
            rocketmq.send(topic, "x" * size, queue_id=queue_id)
    assert command(rocketmq, target, topic) == (0, "")
    for queue_id in range(2):
        of_queue = [one for one in target.messages(topic) if one.queue_id == queue_id]
        assert [len(one.body) for one in of_queue] == sizes


def test_a_message_that_the_target_never_takes_ends_the_mirror_before_it(
    rocketmq: RocketMQ, target: RocketMQ
) -> None:
    topic = rocketmq.topic("large", queues=1)
    for size in (10, 9_000, 40_000, 5):
        rocketmq.send(topic, "x" * size, queue_id=0)
    for _ in range(2):
        code, line = command(rocketmq, target, topic)
        assert code == 2
        assert line.startswith(
            f"pocketmq: the target refuses the message at offset 2 of {topic} broker-a queue 0, whose body has "
            "40,000 bytes: "
        )
        assert "msg body length limit 20000B" in line
        assert line.count("\n") == 1
        assert [len(one.body) for one in target.messages(topic)] == [10, 9_000]
        assert rocketmq.offsets(topic, "pocketmq-mirror-default") == {0: 2}


@pytest.mark.parametrize("ends_cleanly", [True, False])
def test_a_target_that_restarts_in_the_middle_of_a_batch_gets_each_message_once(
    monkeypatch: pytest.MonkeyPatch, ends_cleanly: bool
) -> None:
    monkeypatch.setattr(mirror_module, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(mirroring_module, "ROUND_MS", 300)
    monkeypatch.setattr("pocketmq.pipeline.jobs.moving.copies.BATCH_ROWS", 10)
    with RocketMQCluster(brokers=1) as source, RocketMQCluster(brokers=1) as target:
        for cluster in (source, target):
            cluster.grow("T", queues=2)
        for queue_id in range(2):
            send_to(source, Queue("T", "b0", queue_id), 0, 150)
        target.faults.delay(seconds=0.005, code="SEND_BATCH_MESSAGE", times=None)
        reports: list[Any] = []
        thread = threading.Thread(target=lambda: reports.append(run(mirror_of(source, target, "T"))))
        thread.start()
        for wanted in (30, 100):
            wait_until(lambda wanted=wanted: stored_in(target, 0) >= wanted)  # type: ignore[misc]
            broker = target.broker("b0")
            broker.stop() if ends_cleanly else broker.kill()
            broker.start()
        thread.join(30)
        assert reports[0].findings == []
        for queue_id in range(2):
            with BrokerClient(target.namesrv_addr).closing() as client:
                queue = Queue("T", "b0", queue_id)
                texts = read(client, options_of(target, "T"), [Range(queue, 0, stored_in(target, queue_id))])
            assert texts == [f"m{number}" for number in range(150)]


def stored_in(cluster: RocketMQCluster, queue_id: int) -> int:
    return cluster.call(lambda: cluster.broker("b0").broker.store.max_offset("T", queue_id))
