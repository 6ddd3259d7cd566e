"""Two mirrors of one name, as if on two machines: each message is copied once, whether one is killed or paused."""

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pocketmq.pipeline.jobs.moving import mirror as mirror_module
from pocketmq.pipeline.jobs.moving import mirror_lease, mirroring
from pocketmq.pipeline.jobs.moving.mirror import Mirror, build
from pocketmq.pipeline.jobs.moving.mirror_lease import LeaseLost, MirrorLease
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.testing import EmbeddedServer, RocketMQ, RocketMQCluster

from pipeline.moving.mirrors import GROUP, copies, mirror_of, run, running, texts
from pipeline.topics import bodies, filled
from waiting import wait_until

PAUSED_SECONDS = 61


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror_module, "LEASE_SECONDS", 0.1)
    monkeypatch.setattr("pocketmq.pipeline.jobs.moving.copies.BATCH_ROWS", 3)


@pytest.fixture
def source() -> Iterator[RocketMQ]:
    """A cluster whose time the test moves."""
    with EmbeddedServer(virtual_time=True) as server:
        yield RocketMQ(server)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """elsewhere(): mirrors that start from now on are on another machine."""
    numbers = iter(range(9))
    return lambda: monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"machine{next(numbers)}"))


def sent(source: RocketMQ, count: int = 12) -> str:
    return filled(source, f"leased{count}", count)


def die(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a mirror that does not give its lease back."""
    with monkeypatch.context() as patch:
        patch.setattr(MirrorLease, "release", lambda self: None)
        run(mirror)


def test_a_second_mirror_copies_nothing_and_says_who_has_the_lease(
    source: RocketMQ, target: RocketMQ, elsewhere: Any, caplog: pytest.LogCaptureFixture
) -> None:
    topic = sent(source, 3)
    mirror = mirror_of(source, target, topic)
    with running(mirror):
        target.wait_messages(topic, 3)
        elsewhere()
        holder = rf"{topic} broker-a queue 0 belongs to another {GROUP}: \S+@\d+#\w+ at 127.0.0.1:\d+; end that one,"
        with pytest.raises(LeaseLost, match=holder):
            run(mirror)
        assert "waiting 0.1 s for the lease" in caplog.text
        source.send(topic, "m3", queue_id=0)
        target.wait_messages(topic, 4)
    source.send(topic, "m4", queue_id=0)
    assert run(mirror).lead.startswith("1 messages copied"), "the first has given its lease back"
    assert texts(target, topic) == bodies(5)


def test_the_lease_of_a_killed_mirror_ends(
    source: RocketMQ, target: RocketMQ, elsewhere: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = sent(source, 4)
    mirror = mirror_of(source, target, topic)
    die(mirror, monkeypatch)
    source.send(topic, "m4", queue_id=0)
    elsewhere()
    with pytest.raises(LeaseLost, match="another pocketmq-mirror-default: one that the broker does not name"):
        run(mirror)
    monkeypatch.setattr(mirror_module, "LEASE_SECONDS", 65)
    with running(mirror) as reports:
        wait_until(lambda: source.server.clock.advance(5) and len(texts(target, topic)) == 5)
    assert reports[0].lead.startswith("1 messages copied")


def test_the_successor_of_a_killed_mirror_on_its_machine_does_not_wait(
    source: RocketMQ, target: RocketMQ, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = sent(source, 5)
    die(mirror_of(source, target, topic), monkeypatch)
    source.send(topic, "m5", queue_id=0)
    assert run(mirror_of(source, target, topic)).lead.startswith("1 messages copied")


@pytest.fixture
def pass_seconds(source: RocketMQ, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Of the source, and of the clock by which mirrors know the age of their locks."""
    behind_seconds, steady_ms = 0.0, mirror_lease.steady_ms

    def passing(seconds: float) -> None:
        nonlocal behind_seconds
        source.server.clock.advance(seconds)
        behind_seconds += seconds

    monkeypatch.setattr(mirror_lease, "steady_ms", lambda: steady_ms() + round(behind_seconds * 1000))
    return passing


def before_requests(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], object]) -> None:
    """Call `act` with the number of each request of a mirror before it is sent."""
    copies_of, numbers = mirroring.copies_of, itertools.count()

    def acting(*words: Any, **options: Any) -> Iterator[Any]:
        for copy in copies_of(*words, **options):
            act(next(numbers))
            yield copy

    monkeypatch.setattr(mirroring, "copies_of", acting)


@pytest.fixture
def at_second_request(pass_seconds: Callable[[float], None], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is put into this list is done while a mirror is paused before its second request, for longer than its lock
    lasts."""
    things: list[Any] = []

    def pause(number: int) -> None:
        if number == 1:
            pass_seconds(PAUSED_SECONDS)
            others = threading.Thread(target=lambda: [do() for do in things])
            others.start()  # beside the loop of the mirror that is paused
            others.join(20)

    before_requests(monkeypatch, pause)
    return things


def test_a_mirror_that_was_paused_goes_on_after_the_copies_of_the_one_that_followed_it(
    source: RocketMQ, target: RocketMQ, elsewhere: Any, at_second_request: list[Any]
) -> None:
    topic = sent(source, 12)
    mirror = mirror_of(source, target, topic)
    leads = []
    at_second_request += [elsewhere, lambda: leads.append(run(mirror).lead)]
    report = run(mirror)
    assert leads[0].startswith("9 messages copied")
    assert "3 more were there already" in leads[0]
    assert report.lead.startswith("3 messages copied")
    assert "9 more were there already" in report.lead
    assert texts(target, topic) == bodies(12)


def test_a_mirror_that_was_paused_sends_nothing_while_another_has_its_lease(
    source: RocketMQ, target: RocketMQ, elsewhere: Any, at_second_request: list[Any]
) -> None:
    topic = sent(source, 9)
    mirror, ended = mirror_of(source, target, topic), threading.Event()
    follower = threading.Thread(target=build, args=(msgspec.structs.replace(mirror, is_once=False), ended))
    at_second_request += [elsewhere, follower.start, lambda: target.wait_messages(topic, 9)]
    try:
        with pytest.raises(LeaseLost, match="belongs to another"):
            run(mirror)
        source.send(topic, "m9", queue_id=0)
        target.wait_messages(topic, 10)
    finally:
        ended.set()
        follower.join(20)
    assert texts(target, topic) == bodies(10)


def test_a_long_copy_renews_its_locks(
    source: RocketMQ, target: RocketMQ, pass_seconds: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request takes 15 s; another may have a queue 60 s after its lock was renewed."""
    monkeypatch.setattr(mirror_lease, "PAUSE_SECONDS", 0.01)
    target.faults.delay(seconds=0.1, code="SEND_BATCH_MESSAGE", times=None)
    topic = sent(source, 21)
    owners, locks = [], source.server.broker.membership.locks

    def note_owner(_: int) -> None:
        owners.append(locks.owner(GROUP, MessageQueue(topic, "broker-a", 0), source.server.clock.now_ms()))
        pass_seconds(15)

    before_requests(monkeypatch, note_owner)
    report = run(mirror_of(source, target, topic))
    target.faults.clear()
    assert report.lead.startswith("21 messages copied")
    assert len(owners) == 7
    assert len(set(owners)) == 1
    assert owners[0] is not None


def test_who_is_refused_one_queue_keeps_none_that_it_got_for_it() -> None:
    """Else two mirrors could wait for each other."""
    with RocketMQCluster(brokers=2) as source, RocketMQCluster(brokers=1) as target:
        source.grow("T", queues=1)
        target.grow("T", queues=2)
        broker, queue = source.broker("b1"), MessageQueue("T", "b1", 0)

        def lock() -> None:
            broker.broker.membership.locks.lock(GROUP, [queue], "another", broker.broker.clock.now_ms())

        source.call(lock)
        with pytest.raises(LeaseLost, match=r"^T b1 queue 0 belongs to another"):
            run(mirror_of(source, target, "T"))
        assert copies(target) == []

        def held(name: str) -> list[str]:
            of_broker = source.broker(name).broker
            return [who for *_, who in of_broker.membership.locks.list_held(of_broker.clock.now_ms())]

        wait_until(lambda: source.call(lambda: [held("b0"), held("b1")]) == [[], ["another"]])
