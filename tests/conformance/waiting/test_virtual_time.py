"""Virtual time with unmodified Java clients: hours and days of a server's life within seconds of the wall's time.

The server is embedded in this process, so that a test can move its clock; the clients keep the clock of this machine.
"""

from collections.abc import Iterator

import pytest
from pocketmq.testing import EmbeddedServer, RocketMQ

from conformance.official.beside import START_S, StartBeside
from stopwatch import Stopwatch
from waiting import wait_until

MOVES_S = 15.0
"""Wall time for all that happens once the JVM is up: a few seconds on an idle machine."""
RETRY_SECONDS = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
LEVEL_SECONDS = (1, 5, *RETRY_SECONDS)


@pytest.fixture
def start(java: StartBeside) -> StartBeside:
    """start(mq, what, topic, group)."""
    return lambda mq, *words: java("LaterClient", mq.namesrv_addr, *words)


@pytest.fixture
def mq() -> Iterator[RocketMQ]:
    with EmbeddedServer(virtual_time=True) as server:
        yield RocketMQ(server)


def test_sixteen_retries_and_a_dead_letter(mq: RocketMQ, start: StartBeside) -> None:
    topic, group, began = mq.topic("orders", queues=1), mq.group("billing"), mq.clock.now_ms()
    consumer = start(mq, "fail", topic, group)
    consumer.wait_for("^READY")
    mq.wait_members(group, timeout_seconds=START_S)
    wait_until(lambda: len(mq.held_pulls) >= 2, "topic and retry topic are pulled", START_S)
    mq.send(topic, "never good")
    watch = Stopwatch()
    for retry in range(16):
        consumer.wait_for("^GOT", retry + 1)
        wait_until(lambda: mq.delayed, "the message was sent back")
        mq.clock.advance_to_next()
    wait_until(lambda: mq.dead_letters(group), "the message is a dead letter")
    assert consumer.said(r"^GOT (\d+)") == [str(times) for times in range(17)]
    assert mq.clock.now_ms() - began == sum(RETRY_SECONDS) * 1000
    assert watch.seconds < MOVES_S


def test_eighteen_delay_levels(mq: RocketMQ, start: StartBeside) -> None:
    topic, group, began = mq.topic("orders"), mq.group("billing"), mq.clock.now_ms()
    consumer = start(mq, "consume", topic, group)
    producer = start(mq, "levels", topic, "shop")
    assert producer.process.wait(START_S) == 0
    wait_until(lambda: len(mq.held_pulls) >= 4, "the topic is pulled", START_S)
    watch = Stopwatch()
    for level, seconds in enumerate(LEVEL_SECONDS, 1):
        mq.clock.advance_to_next()
        assert mq.clock.now_ms() - began == seconds * 1000
        assert consumer.wait_for(r"^GOT 0 \d+ (.*)$", level)[-1] == f"level {level}"
    assert mq.clock.advance_to_next() is None
    assert watch.seconds < MOVES_S


def test_a_message_waits_two_hours(mq: RocketMQ, start: StartBeside, version: str) -> None:
    if version == "4.9":
        pytest.skip("4.9 has no timed messages")
    topic, group = mq.topic("reminders"), mq.group("billing")
    consumer = start(mq, "consume", topic, group)
    assert start(mq, "timed", topic, "shop").process.wait(START_S) == 0
    wait_until(lambda: len(mq.held_pulls) >= 4, "the topic is pulled", START_S)
    mq.clock.advance("1h59m57s")
    assert consumer.said("^GOT") == []
    mq.clock.advance("5s")
    assert sorted(consumer.wait_for(r"^GOT 0 \d+ (.*)$", 2)) == ["delay", "time"]


def test_transaction_checks(mq: RocketMQ, start: StartBeside) -> None:
    topic = mq.topic("orders")
    producer = start(mq, "transaction", topic, "payers")
    producer.wait_for("^READY")
    producers = mq.server.broker.membership.producers
    wait_until(lambda: producers.available_connection("payers"), "the first heartbeat", START_S)
    for check in range(1, 4):
        assert mq.messages(topic) == []
        mq.clock.advance("30s")
        assert producer.wait_for(r"^ASKED (\d+)", check)[-1] == str(check)
    assert [message.text for message in mq.wait_messages(topic, 1)] == ["open"]
    mq.clock.advance("1h")
    assert len(producer.said("^ASKED")) == 3


def test_the_two_acts_of_the_puzzle(start: StartBeside) -> None:
    """A new group with CONSUME_FROM_LAST_OFFSET reads history, until retention has deleted the first log file."""
    with EmbeddedServer(virtual_time=True, mappedFileSizeCommitLog=1 << 16) as server:
        mq = RocketMQ(server)
        topic = mq.topic("orders", queues=1)
        for number in range(150):
            mq.send(topic, f"{number} " + "x" * 1000)
        first = start(mq, "consume", topic, mq.group("first-act"))
        assert sorted(map(int, first.wait_for(r"^GOT 0 (\d+)", 150))) == list(range(150))
        watch = Stopwatch()
        mq.clock.advance("96h")
        assert watch.seconds < 1
        assert mq.messages(topic)[0].queue_offset > 0
        second_act = mq.group("second-act")
        second = start(mq, "consume", topic, second_act)
        wait_until(lambda: mq.held_pulls(group=second_act, topic=topic), "the second group pulls", START_S)
        mq.send(topic, "new")
        assert second.wait_for(r"^GOT 0 (\d+ .*)$") == ["150 new"]
        assert first.wait_for(r"^GOT 0 (\d+)", 151)[-1] == "150"


def test_a_jump_of_days_does_not_expire_a_client(mq: RocketMQ, start: StartBeside) -> None:
    topic, group = mq.topic("orders", queues=1), mq.group("billing")
    consumer = start(mq, "consume", topic, group)
    consumer.wait_for("^READY")
    wait_until(lambda: mq.held_pulls(topic=topic), "the topic is pulled", START_S)
    members = mq.members(group)
    for day in range(1, 4):
        mq.clock.advance("1d")
        mq.send(topic, f"day {day}")
        assert consumer.wait_for(r"^GOT 0 \d+ (.*)$", day)[-1] == f"day {day}"
    assert mq.members(group) == members, "on the same connection"
    assert len(members) == 1
