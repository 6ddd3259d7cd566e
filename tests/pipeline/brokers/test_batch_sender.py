"""Batches sent to a broker: acknowledged, retried, and no faster than allowed."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pocketmq.pipeline.errors import PipelineError, SendError
from pocketmq.pipeline.tables.brokers.broker_client import BrokerClient
from pocketmq.pipeline.tables.planning.positions import Queue
from pocketmq.pipeline.tables.records.batch_encoder import bodies_of, elements, property_texts, row_ids
from pocketmq.testing import EmbeddedServer, RocketMQ
from pocketmq.testing.faults.rule import Rule

from pipeline.brokers.cluster_sends import sender_to


def test_a_connection_lost_during_a_send_loses_no_message(
    rocketmq: RocketMQ, dropping: Callable[[str, int], Rule]
) -> None:
    topic = rocketmq.topic("sent", queues=2)
    dropped = dropping("SEND_BATCH_MESSAGE", 4)
    sender = sender_to(BrokerClient(rocketmq.namesrv_addr), in_flight=3, retry_timeout_ms=30_000)
    for first in range(0, 100, 5):
        batch = pa.RecordBatch.from_pydict({"body": [f"m{first + n:02}".encode() for n in range(5)]})
        texts = property_texts(batch, row_ids("w", first, 5))
        sender.send_batch(topic, b"".join(elements(bodies_of(batch), texts).to_pylist()), 5)
    sender.finish()
    messages = rocketmq.messages(topic)
    assert {one.text for one in messages} == {f"m{number:02}" for number in range(100)}
    assert len({one.message_id for one in messages}) == 100, "what was sent twice has one id"
    assert dropped.hit_count >= 2


def test_a_topic_that_no_broker_has_or_creates_is_named() -> None:
    with (
        EmbeddedServer(autoCreateTopicEnable=False) as server,
        BrokerClient(server.namesrv_addr).closing() as client,
    ):
        sender = sender_to(client, retry_timeout_ms=0)
        sender.send_one("Unmade", b"x", "", 0)
        with pytest.raises(
            SendError, match="no broker has topic Unmade, and none creates topics automatically"
        ):
            sender.finish()


def test_rows_are_sent_no_faster_than_allowed(rocketmq: RocketMQ, client: BrokerClient) -> None:
    topic = rocketmq.topic("slow", queues=1)
    begun = time.monotonic()
    sender = sender_to(client, rows_per_second=100)
    for _ in range(20):
        sender.send_one(topic, b"x", "", 0)
    sender.finish()
    assert time.monotonic() - begun >= 0.188  # nineteen pauses between twenty rows, and a timer's millisecond
    assert len(rocketmq.messages(topic)) == 20


def test_a_send_is_given_up_after_so_many_retries() -> None:
    with BrokerClient("127.0.0.1:1").closing() as client:
        sender = sender_to(client, timeout_ms=1000, retry_timeout_ms=60_000, retries=1)
        sender.send_one("T", b"x", "", 0)
        with pytest.raises(SendError, match=r"cannot connect .*, given up after 1 retries"):
            sender.finish()


class RefusesFirst:
    """A client whose first request is refused while the second one is started."""

    def __init__(self) -> None:
        self.requests = 0
        self._loop = asyncio.new_event_loop()

    def run(self, work: Any) -> Any:
        return self._loop.run_until_complete(work)

    async def with_retries(self, *_: Any, **__: Any) -> None:
        self.requests += 1
        if self.requests == 1:
            for _ in range(2):  # so that it ends between the two steps of starting the second one
                await asyncio.sleep(0)
            raise PipelineError("refused")

    def close(self) -> None:
        self._loop.close()


def test_nothing_is_sent_after_a_request_of_its_queue_that_was_not_stored() -> None:
    client, queue = RefusesFirst(), Queue("T", "a", 0)
    sender = sender_to(client, retry_timeout_ms=1000)  # type: ignore[arg-type]
    sender.send_one("T", b"first", "", 0, queue=queue)
    sender.send_one("T", b"second", "", 0, queue=queue)
    with pytest.raises(SendError, match="refused"):
        sender.finish()
    client.close()
    assert client.requests == 1
