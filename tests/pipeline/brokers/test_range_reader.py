"""Ranges read from a broker: whole after a lost connection, with every loss reported."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="the pipeline's extra is not installed")

from pocketmq.pipeline.brokers.batch_sender import BatchSender
from pocketmq.pipeline.brokers.broker_client import BrokerClient
from pocketmq.pipeline.errors import (
    DataLossError,
    SendError,
    SourceUnreachable,
)
from pocketmq.pipeline.planning.positions import Queue
from pocketmq.pipeline.planning.ranges import Range
from pocketmq.store.clock import VirtualClock
from pocketmq.testing import EmbeddedServer, RocketMQ
from pocketmq.testing.faults.rule import Rule

from pipeline.brokers.reading import options, read


def test_a_connection_lost_during_a_read_loses_no_message(
    rocketmq: RocketMQ, dropping: Callable[[str, int], Rule]
) -> None:
    topic = rocketmq.topic("dropped", queues=1)
    for number in range(40):
        rocketmq.send(topic, f"m{number:02}")
    dropped = dropping("PULL_MESSAGE", 7)
    chosen = options(rocketmq, topic, pullBatchSize="2", pullInFlight="2", decodeRows="5")
    assert read(BrokerClient(rocketmq.namesrv_addr), chosen) == [f"m{number:02}" for number in range(40)]
    assert dropped.hit_count >= 2


def test_messages_of_deleted_files_are_a_loss_or_skipped(tmp_path: Path) -> None:
    clock = VirtualClock(1_700_000_000_000)
    settings = {"mappedFileSizeCommitLog": 4096, "fileReservedTime": 1, "mappedFileSizeConsumeQueue": 600}
    with EmbeddedServer(settings, store=tmp_path, clock=clock) as server:
        one = RocketMQ(server)
        topic = one.topic("old", queues=1)
        for number in range(60):
            one.send(topic, f"m{number:02}" + "." * 100)
        queue = Queue(topic, "broker-a", 0)
        chosen = options(one, topic)
        with BrokerClient(one.namesrv_addr).closing() as client:
            whole = Range(queue, 0, 60)
            assert len(read(client, chosen, [whole])) == 60
            while server.call(server.broker.store.delete_oldest_log_file):
                low = client.bounds([queue], 30_000)[queue][0]
                if low > 20:
                    break
            with pytest.raises(DataLossError, match=rf"old.* queue 0: {low} messages, offsets \[0, {low}\)"):
                read(client, chosen, [whole])
            tolerant = options(one, topic, failOnDataLoss="false")
            assert [text[:3] for text in read(client, tolerant, [whole])] == [
                f"m{n:02}" for n in range(low, 60)
            ]


def test_queues_without_messages_are_not_a_failure(rocketmq: RocketMQ) -> None:
    topic = rocketmq.topic("sparse", queues=4)
    for text in ("one", "two"):
        rocketmq.send(topic, text, queue_id=2)
    start = f'{{"{topic}":{{"0":0,"1":-1,"2":1,"3":-2}}}}'
    with BrokerClient(rocketmq.namesrv_addr).closing() as client:
        assert read(client, options(rocketmq, topic)) == ["one", "two"]
        assert read(client, options(rocketmq, topic, startingOffsets=start, minPartitions="9")) == ["two"]
        empty = rocketmq.topic("empty", queues=3)
        assert read(client, options(rocketmq, empty, maxRecordsPerPartition="1")) == []


def test_a_broker_that_does_not_answer_is_given_up_after_the_time_in_the_options(
    rocketmq: RocketMQ, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = rocketmq.topic("silent", queues=1)
    rocketmq.send(topic, "one")
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        BrokerClient(rocketmq.namesrv_addr).closing() as client,
    ):
        opened = client._open()
        get = opened.get

        async def away(address: str) -> object:
            broker = f"127.0.0.1:{silent.getsockname()[1]}"
            return await get(broker if address == rocketmq.server.broker_addr else address)

        monkeypatch.setattr(opened, "get", away)
        chosen = options(rocketmq, topic, pullTimeoutMs="50", retryTimeoutMs="0")
        with pytest.raises(SourceUnreachable, match=r"did not answer PULL_MESSAGE within 0.05 s, given up"):
            read(client, chosen, [Range(Queue(topic, "broker-a", 0), 0, 1)])
        sender = BatchSender(client, group="g", in_flight=1, timeout_ms=60, retry_timeout_ms=0)
        sender.send_one(topic, b"x", "", 0)
        with pytest.raises(SendError, match=r"did not answer SEND_MESSAGE_V2 within 0.06 s, given up"):
            sender.finish()
