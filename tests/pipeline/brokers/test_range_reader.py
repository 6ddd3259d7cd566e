"""Ranges read from a broker: whole after a lost connection, with every loss reported."""

import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pocketmq.pipeline.errors import DataLossError, SendError, SourceUnreachable
from pocketmq.pipeline.tables.brokers import range_reader
from pocketmq.pipeline.tables.brokers.broker_client import BrokerClient
from pocketmq.pipeline.tables.brokers.range_reader import RangeReader
from pocketmq.pipeline.tables.planning.positions import Queue
from pocketmq.pipeline.tables.planning.ranges import Range
from pocketmq.store.clock import VirtualClock
from pocketmq.testing import EmbeddedServer, RocketMQ
from pocketmq.testing.faults.rule import Rule

from pipeline.brokers.cluster_sends import sender_to
from pipeline.brokers.reading import options, read
from pipeline.topics import filled


def test_a_connection_lost_during_a_read_loses_no_message(
    rocketmq: RocketMQ, dropping: Callable[[str, int], Rule]
) -> None:
    topic = filled(rocketmq, "dropped", 40, text="m{:02}")
    dropped = dropping("PULL_MESSAGE", 7)
    chosen = options(rocketmq, topic, pullBatchSize="2", pullInFlight="2", decodeRows="5")
    assert read(BrokerClient(rocketmq.namesrv_addr), chosen) == [f"m{number:02}" for number in range(40)]
    assert dropped.hit_count >= 2


def offsets_of(reader: RangeReader) -> list[int]:
    return [offset for records in reader.batches() for offset in records.column("queueOffset").to_pylist()]


def test_messages_of_deleted_files_are_a_loss_or_skipped_logged_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
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
                low = client.bounds([queue], 30_000)[queue].low
                if low > 20:
                    break
            with pytest.raises(DataLossError, match=rf"old.* queue 0: {low} messages, offsets \[0, {low}\)"):
                read(client, chosen, [whole])
            tolerant = options(one, topic, failOnDataLoss="false")
            reader = RangeReader(client, whole, tolerant)
            with caplog.at_level(logging.WARNING, "pocketmq.pipeline"):
                assert offsets_of(reader) == list(range(low, 60))
            assert (reader.lost, reader.losses[0].lo) == (low, 0)
            assert "skipped, because failOnDataLoss is false: old" in caplog.text


def test_queues_without_messages_are_not_a_failure(rocketmq: RocketMQ, client: BrokerClient) -> None:
    topic = rocketmq.topic("sparse", queues=4)
    for text in ("one", "two"):
        rocketmq.send(topic, text, queue_id=2)
    start = f'{{"{topic}":{{"0":0,"1":-1,"2":1,"3":-2}}}}'
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

        async def away(address: str, timeout_seconds: float | None = None) -> object:
            broker = f"127.0.0.1:{silent.getsockname()[1]}"
            return await get(broker if address == rocketmq.server.broker_addr else address)

        monkeypatch.setattr(opened, "get", away)
        chosen = options(rocketmq, topic, pullTimeoutMs="50", retryTimeoutMs="0")
        with pytest.raises(SourceUnreachable, match=r"did not answer PULL_MESSAGE within 0.05 s, given up"):
            read(client, chosen, [Range(Queue(topic, "broker-a", 0), 0, 1)])
        sender = sender_to(client, timeout_ms=60, retry_timeout_ms=0)
        sender.send_one(topic, b"x", "", 0)
        with pytest.raises(SendError, match=r"did not answer SEND_MESSAGE_V2 within 0.06 s, given up"):
            sender.finish()


class LosesAReply(RangeReader):
    """Drops the bytes of the reply to the pull at offset 4."""

    def _within(self, reply: Any, part: Range) -> Any:
        return None if part.lo == 4 else super()._within(reply, part)


def test_messages_that_are_missing_from_a_reply_are_counted_also_when_that_is_tolerated(
    rocketmq: RocketMQ, client: BrokerClient, caplog: pytest.LogCaptureFixture
) -> None:
    topic = filled(rocketmq, "hole", 10)
    wanted = Range(Queue(topic, "broker-a", 0), 0, 10)
    with pytest.raises(DataLossError, match=r"8 messages where offsets \[0, 10\) should have 10"):
        offsets_of(LosesAReply(client, wanted, options(rocketmq, topic, pullBatchSize="2")))
    tolerant = options(rocketmq, topic, pullBatchSize="2", failOnDataLoss="false")
    reader = LosesAReply(client, wanted, tolerant)
    with caplog.at_level(logging.WARNING, "pocketmq.pipeline"):
        assert len(offsets_of(reader)) == 8
    assert reader.lost == 2
    assert "accepted, because failOnDataLoss is false" in caplog.text


def test_the_parts_of_a_range_are_not_held_in_memory(rocketmq: RocketMQ, client: BrokerClient) -> None:
    """A list of the parts of this range would need a terabyte."""
    topic = filled(rocketmq, "wide", 8)
    wide = Range(Queue(topic, "broker-a", 0), 0, 10**12)
    chosen = options(rocketmq, topic, pullBatchSize="4", pullInFlight="2", decodeRows="4")
    batches = RangeReader(client, wide, chosen).batches()
    assert next(batches).column("queueOffset").to_pylist() == [0, 1, 2, 3]
    batches.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("expression", ["*", "A"])
def test_replies_of_later_parts_wait_while_too_many_bytes_are_ahead(
    rocketmq: RocketMQ, client: BrokerClient, monkeypatch: pytest.MonkeyPatch, expression: str
) -> None:
    monkeypatch.setattr(range_reader, "BYTES_AHEAD", 1)
    monkeypatch.setattr(range_reader, "FILTERED_PART", 8)
    topic = filled(rocketmq, "ahead", 40, text="m{:02}", tags="A")
    chosen = options(
        rocketmq, topic, pullBatchSize="2", pullInFlight="4", decodeRows="4", subExpression=expression
    )
    most = 0

    class Watched(RangeReader):
        async def _pull(self, *asked: Any) -> Any:
            nonlocal most
            most = max(most, sum(len(part.replies) for part in self._pulls))
            return await super()._pull(*asked)

    reader = Watched(client, Range(Queue(topic, "broker-a", 0), 0, 40), chosen)
    assert offsets_of(reader) == list(range(40))
    assert most <= 8, "as many as are in flight, and one more for each part"
