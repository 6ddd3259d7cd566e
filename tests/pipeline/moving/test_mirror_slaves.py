"""A mirror while a master is away and its slave is in the route: no message is missing, and none is sent twice."""

from collections.abc import Iterator

import pytest
from pocketmq.pipeline.errors import SourceUnreachable
from pocketmq.pipeline.jobs.moving import mirror as mirror_module
from pocketmq.pipeline.jobs.moving import mirroring as mirroring_module
from pocketmq.pipeline.tables.brokers.broker_client import BrokerClient
from pocketmq.pipeline.tables.planning.positions import Queue
from pocketmq.testing import RocketMQCluster

from pipeline.brokers.cluster_sends import send_to
from pipeline.moving.mirrors import GROUP, copies, mirror_of, run, running
from pipeline.topics import bodies
from waiting import wait_until

FIRST = Queue("T", "b0", 0)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirroring_module, "ROUND_MS", 300)


@pytest.fixture
def source() -> Iterator[RocketMQCluster]:
    with RocketMQCluster(brokers=1, slaves=1) as cluster:
        cluster.grow("T", queues=1)
        yield cluster


@pytest.fixture
def target() -> Iterator[RocketMQCluster]:
    with RocketMQCluster(brokers=1) as cluster:
        cluster.grow("T", queues=1)
        yield cluster


def committed(source: RocketMQCluster) -> int | None:
    with BrokerClient(source.namesrv_addr).closing() as client:
        return client.committed(GROUP, [FIRST], 1_000)[FIRST]


def test_what_a_slave_holds_is_copied_while_its_master_is_away(
    source: RocketMQCluster, target: RocketMQCluster
) -> None:
    send_to(source, FIRST, 0, 3)
    with running(mirror_of(source, target, "T")) as reports:
        wait_until(lambda: len(copies(target)) == 3)
        send_to(source, FIRST, 3, 2)
        source.wait_replicated()
        source.partition(["b0-1"], ["b0"])
        send_to(source, FIRST, 5, 2)
        source.broker("b0").stop()
        wait_until(lambda: len(copies(target)) >= 5)
        source.heal()
        source.broker("b0").start()
        wait_until(lambda: len(copies(target)) >= 7)
        wait_until(lambda: committed(source) == 7, "the master has the position, too")
        send_to(source, FIRST, 7, 1)
        wait_until(lambda: len(copies(target)) >= 8)
    assert copies(target) == bodies(8)
    assert reports[0].findings == []
    assert run(mirror_of(source, target, "T")).lead.startswith("0 messages copied")


def test_a_master_that_returns_with_an_older_position_makes_no_second_copies(
    source: RocketMQCluster, target: RocketMQCluster
) -> None:
    send_to(source, FIRST, 0, 3)
    assert run(mirror_of(source, target, "T")).lead.startswith("3 messages copied")
    send_to(source, FIRST, 3, 4)
    source.wait_replicated()
    source.broker("b0").stop()
    report = run(mirror_of(source, target, "T"))
    assert report.lead.startswith("4 messages copied")
    assert "b0 of the source has no master in its route" in report.lead
    source.broker("b0").start()
    send_to(source, FIRST, 7, 1)
    report = run(mirror_of(source, target, "T"))
    assert copies(target) == bodies(8)
    assert report.lead.startswith("1 messages copied")
    assert "no master" not in report.lead


def test_a_slave_that_does_not_know_the_position_is_waited_out(
    source: RocketMQCluster, target: RocketMQCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its offsets are copied every ten seconds, so it may have the messages and not the offset."""
    monkeypatch.setattr(mirror_module, "WAIT_SECONDS", 0.1)
    send_to(source, FIRST, 0, 3)
    source.wait_replicated()
    source.partition(["b0-1"], ["b0"])
    assert run(mirror_of(source, target, "T")).lead.startswith("3 messages copied")
    source.broker("b0").stop()
    source.heal()
    with pytest.raises(SourceUnreachable, match="no master in its route, and its slave does not know"):
        run(mirror_of(source, target, "T"))
    source.broker("b0").start()
    send_to(source, FIRST, 3, 1)
    run(mirror_of(source, target, "T"))
    assert copies(target) == bodies(4)


def test_a_first_mirror_from_the_end_waits_for_the_master(
    source: RocketMQCluster, target: RocketMQCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a slave may be before the end of its master, or behind the position of an earlier mirror."""
    monkeypatch.setattr(mirror_module, "WAIT_SECONDS", 0.1)
    send_to(source, FIRST, 0, 3)
    source.wait_replicated()
    source.broker("b0").stop()
    with pytest.raises(SourceUnreachable, match="no master in its route, and its slave does not know"):
        run(mirror_of(source, target, "T", starts_at_end=True))
    assert run(mirror_of(source, target, "T")).lead.startswith("3 messages copied"), "all that there is"


def test_a_target_without_a_master_is_waited_for(
    target: RocketMQCluster, caplog: pytest.LogCaptureFixture
) -> None:
    with RocketMQCluster(brokers=2, slaves=1) as guarded:
        guarded.grow("T", queues=1)
        with running(mirror_of(target, guarded, "T")) as reports:
            send_to(target, FIRST, 0, 2)
            wait_until(lambda: len(copies(guarded)) == 2)
            guarded.wait_replicated()
            guarded.broker("b0").stop()
            send_to(target, FIRST, 2, 3)
            wait_until(lambda: "broker b0 of the target does not answer" in caplog.text)
            guarded.broker("b0").start()
            wait_until(lambda: not reports and len(copies(guarded)) == 5)
        assert copies(guarded) == bodies(5)
