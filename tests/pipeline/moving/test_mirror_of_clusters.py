"""A mirror between clusters of several brokers: each queue in order, also when brokers come and go."""

import pytest

pytest.importorskip("pyarrow", reason="the pipeline's extra is not installed")

from pocketmq.pipeline.jobs.moving import mirror as mirror_module
from pocketmq.pipeline.jobs.moving.mirror_queues import target_of
from pocketmq.pipeline.tables.planning.positions import Queue
from pocketmq.testing import RocketMQCluster

from pipeline.brokers.cluster_sends import send_to
from pipeline.moving.mirrors import copies, mirror_of, run, running
from waiting import wait_until

TARGETS = [Queue("T", broker, number) for broker in ("x", "y", "z") for number in range(4)]
FIRST, SECOND = Queue("T", "b0", 0), Queue("T", "b1", 0)


def test_a_queue_keeps_its_target_whoever_is_away() -> None:
    queues = [Queue("T", broker, number) for broker in ("a", "b", "c") for number in range(4)]
    for queue in queues:
        chosen = target_of(queue, TARGETS)
        assert chosen.queue_id == queue.queue_id
        for away in {"x", "y", "z"} - {chosen.broker_name}:
            assert target_of(queue, [each for each in TARGETS if each.broker_name != away]) == chosen
    assert {target_of(queue, TARGETS).broker_name for queue in queues} == {"x", "y", "z"}
    assert target_of(Queue("T", "y", 2), TARGETS) == Queue("T", "y", 2)


def test_brokers_come_and_go_while_each_queue_is_copied_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror_module, "PAUSE_SECONDS", 0.02)
    with RocketMQCluster(brokers=2) as source, RocketMQCluster(brokers=2) as target:
        source.grow("T", queues=1)
        target.grow("T", queues=1)
        send_to(source, FIRST, 0, 3)
        send_to(source, SECOND, 0, 2)
        source.broker("b1").stop()
        with running(mirror_of(source, target, "T")) as reports:
            wait_until(lambda: len(copies(target)) == 3)
            source.broker("b1").start()
            wait_until(lambda: len(copies(target)) == 5)
            target.broker("b0").stop()
            send_to(source, FIRST, 3, 2)
            target.broker("b0").start()
            wait_until(lambda: len(copies(target)) >= 7)
        assert copies(target) == ["m0", "m1", "m2", "m3", "m4", "m0", "m1"]
        send_to(source, SECOND, 2, 1)
        again = run(mirror_of(source, target, "T"))
        assert again.lead.startswith("1 messages copied"), "a second run goes on where the first ended"
        assert copies(target) == ["m0", "m1", "m2", "m3", "m4", "m0", "m1", "m2"]
        assert reports[0].findings == again.findings == []
