"""A mirror whose target is made otherwise: fewer queues, no right to write, smaller messages, or away in the middle."""

from collections.abc import Iterator

import pytest
from pocketmq.pipeline.jobs.moving import mirroring as mirroring_module
from pocketmq.pipeline.jobs.moving.mirror_queues import target_of
from pocketmq.pipeline.tables.planning.positions import Queue
from pocketmq.testing import EmbeddedServer, RocketMQ

from pipeline.brokers.cluster_sends import send_to
from pipeline.moving.mirrors import copies, end_of, mirror_of, run_command, running, two_clusters
from pipeline.topics import bodies, filled, make
from waiting import wait_until


@pytest.fixture(scope="module")
def target() -> Iterator[RocketMQ]:
    with EmbeddedServer({"maxMessageSize": 20_000}) as server:
        yield RocketMQ(server)


def command(source: RocketMQ, target: RocketMQ, topic: str) -> tuple[int, str]:
    ran = run_command(source, target, topic, "--quiet")
    return ran.exit_code, ran.output


@pytest.mark.parametrize(("readable", "writable"), [(1, 1), (2, 2), (4, 2), (8, 8)])
def test_each_queue_keeps_its_order_in_the_queues_of_the_target_that_are_written_to(
    rocketmq: RocketMQ, target: RocketMQ, readable: int, writable: int
) -> None:
    topic = filled(rocketmq, f"narrow-{readable}-{writable}", 40, queues=4)
    make(target, topic, readable=readable, writable=writable)
    assert command(rocketmq, target, topic) == (0, "")
    copies = target.messages(topic)
    assert len(copies) == 40
    assert {one.queue_id for one in copies} <= set(range(writable))
    for queue_id in range(4):
        of_queue = [(one.queue_id, one.text) for one in copies if int(one.text[1:]) % 4 == queue_id]
        assert [text for _, text in of_queue] == bodies(40, queue_id, 4)
        assert len({queue for queue, _ in of_queue}) == 1


def test_a_topic_that_must_not_be_written_to_is_one_line(rocketmq: RocketMQ, target: RocketMQ) -> None:
    topic = filled(rocketmq, "locked", 1)
    make(target, topic, perm=4)
    line = f"pocketmq: topic {topic} of the target can only be read: its permission must include writing\n"
    assert command(rocketmq, target, topic) == (2, line)


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
    monkeypatch.setattr(mirroring_module, "ROUND_MS", 300)
    monkeypatch.setattr("pocketmq.pipeline.jobs.moving.copies.BATCH_ROWS", 10)
    with two_clusters(queues=2) as (source, target):
        queues = [Queue("T", "b0", queue_id) for queue_id in range(2)]
        for queue in queues:
            send_to(source, queue, 0, 150)
        target.faults.delay(seconds=0.005, code="SEND_BATCH_MESSAGE", times=None)
        with running(mirror_of(source, target, "T")) as reports:
            for wanted in (30, 100):
                wait_until(lambda wanted=wanted: end_of(target, queues[0]) >= wanted)
                broker = target.broker("b0")
                broker.stop() if ends_cleanly else broker.kill()
                broker.start()
            wait_until(lambda: all(end_of(target, queue) == 150 for queue in queues), timeout=30)
        assert reports[0].findings == []
        assert copies(target) == 2 * bodies(150)


TARGETS = [Queue("T", broker, number) for broker in ("x", "y", "z") for number in range(4)]


def test_a_queue_keeps_its_target_whoever_is_away() -> None:
    queues = [Queue("T", broker, number) for broker in ("a", "b", "c") for number in range(4)]
    for queue in queues:
        chosen = target_of(queue, TARGETS)
        assert chosen.queue_id == queue.queue_id
        for away in {"x", "y", "z"} - {chosen.broker_name}:
            assert target_of(queue, [each for each in TARGETS if each.broker_name != away]) == chosen
    assert {target_of(queue, TARGETS).broker_name for queue in queues} == {"x", "y", "z"}
    assert target_of(Queue("T", "y", 2), TARGETS) == Queue("T", "y", 2)
