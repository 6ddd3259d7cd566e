"""A broker that accepts connections and never answers: it is named within seconds, and given up in time."""

import asyncio
import logging
import time
from collections.abc import Iterator

import pytest
from pocketmq.client.errors import NotReachable
from pocketmq.pipeline.errors import SourceUnreachable
from pocketmq.pipeline.jobs.answers.lag_rows import lags_of_brokers
from pocketmq.pipeline.jobs.answers.run import exit_on_user_error
from pocketmq.pipeline.jobs.sql.message_input import MessageInput
from pocketmq.pipeline.tables.brokers.broker_client import BrokerClient
from pocketmq.pipeline.tables.brokers.range_reader import RangeReader
from pocketmq.pipeline.tables.brokers.wait_log import Silence, WaitLog
from pocketmq.pipeline.tables.planning.positions import Queue
from pocketmq.pipeline.tables.planning.ranges import Range
from pocketmq.testing import RocketMQ

from pipeline.brokers.reading import options


@pytest.fixture
def client(rocketmq: RocketMQ) -> Iterator[BrokerClient]:
    with BrokerClient(rocketmq.namesrv_addr).closing() as client:
        client.notes.say_after_seconds = 0.05
        yield client
    rocketmq.faults.clear()


def test_a_retry_ends_with_the_time_although_its_request_may_take_longer(client: BrokerClient) -> None:
    async def ask(fresh: bool) -> None:
        if not fresh:
            raise NotReachable("cannot connect to 127.0.0.1:1")
        await asyncio.sleep(60)

    begun = time.monotonic()
    with pytest.raises(SourceUnreachable, match=r"route of T: cannot connect .*:1, given up after 300 ms$"):
        client.run(client.with_retries("route of T", ask, 300))
    assert time.monotonic() - begun < 5


def test_the_first_request_has_its_own_time(client: BrokerClient) -> None:
    async def ask(fresh: bool) -> str:
        await asyncio.sleep(0.05)
        return "answer"

    assert client.run(client.with_retries("route of T", ask, 0)) == "answer"


def test_no_request_is_under_way_after_one_has_failed(client: BrokerClient) -> None:
    ended = []

    async def ask(topic: str, fresh: bool) -> None:
        if topic == "T1":
            raise NotReachable("cannot connect")
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(topic)

    with pytest.raises(SourceUnreachable):
        client.ask_each("route of", ["T1", "T2", "T3"], ask, 0)
    assert sorted(ended) == ["T2", "T3"]


def test_a_broker_is_named_once_for_all_of_its_queues(
    rocketmq: RocketMQ, client: BrokerClient, caplog: pytest.LogCaptureFixture
) -> None:
    topic = rocketmq.topic("wide", queues=4)
    queues = client.queues(topic, 10_000)
    caplog.clear()
    rocketmq.faults.delay(code="GET_MAX_OFFSET", seconds=0.2, times=None)
    assert len(client.bounds(queues, 10_000)) == 4
    first, second = caplog.messages
    assert first == f"bounds, {topic} at broker-a: no answer; trying until 10 s are over"
    assert second.startswith(f"bounds, {topic} at broker-a: answered after")


def reader_of(rocketmq: RocketMQ, client: BrokerClient, name: str, **more: str) -> tuple[RangeReader, Queue]:
    topic = rocketmq.topic(name, queues=1)
    for number in range(4):
        rocketmq.send(topic, f"m{number}")
    queue = Queue(topic, "broker-a", 0)
    return RangeReader(client, Range(queue, 0, 4), options(rocketmq, topic, **more)), queue


def test_pulls_without_an_answer_are_said(
    rocketmq: RocketMQ, client: BrokerClient, caplog: pytest.LogCaptureFixture
) -> None:
    reader, queue = reader_of(rocketmq, client, "slow-pulls")
    rocketmq.faults.delay(code="PULL_MESSAGE", seconds=0.2, times=1)
    assert sum(map(len, reader.batches())) == 4
    (first, second) = caplog.messages
    assert first == f"pull of {queue}: no answer; trying until 60 s are over"
    assert second.startswith(f"pull of {queue}: answered after")


async def test_pulls_that_are_answered_are_not_said(caplog: pytest.LogCaptureFixture) -> None:
    answered = 0
    with Silence(WaitLog(), "pull of T", 60_000, lambda: answered) as silence:
        for _ in range(3):
            answered += 1
            silence._say()
            assert caplog.messages == []
        silence._say()
        assert caplog.messages == ["pull of T: no answer; trying until 60 s are over"]


def test_the_time_of_a_pull_in_flight_is_part_of_the_time_for_retries(
    rocketmq: RocketMQ, client: BrokerClient
) -> None:
    reader, _ = reader_of(rocketmq, client, "no-pulls", pullTimeoutMs="200", retryTimeoutMs="250")
    silent = rocketmq.faults.silence(code="PULL_MESSAGE", times=None)
    with pytest.raises(SourceUnreachable, match=r"did not answer PULL_MESSAGE .* given up after 250 ms$"):
        list(reader.batches())
    assert silent.hit_count <= 2, "the pull in flight and one retry"


def test_lag_names_the_broker_that_does_not_answer(
    rocketmq: RocketMQ, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pocketmq.pipeline.tables.brokers.wait_log.SAY_AFTER_SECONDS", 0.05)
    rocketmq.faults.delay(code="GET_CONSUME_STATS", seconds=0.2, times=1)
    lags_of_brokers(MessageInput(namesrv_addr=rocketmq.namesrv_addr), ["G"])
    rocketmq.faults.clear()
    assert caplog.messages[0].startswith("offsets of groups at 127.0.0.1:")
    assert caplog.messages[0].endswith("no answer; trying until 15 s are over")


def test_a_job_prints_no_warnings_of_the_client(capsys: pytest.CaptureFixture[str]) -> None:
    client_log = logging.getLogger("pocketmq.client.connections.connection")
    client_log.propagate, before = True, logging.getLogger().handlers[:]
    logging.getLogger().handlers.clear()
    try:
        with exit_on_user_error():
            client_log.warning("GET_MIN_OFFSET timed out")
            logging.getLogger("pocketmq.pipeline").warning("it is said here")
    finally:
        logging.getLogger().handlers[:] = before
    assert capsys.readouterr().err == "pocketmq: it is said here\n"
