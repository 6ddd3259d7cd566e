"""Rows for queues of several brokers: each queue in order, and sends that survive a route that has changed."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pocketmq.pipeline.errors import PipelineError
from pocketmq.pipeline.tables.brokers import batch_sender
from pocketmq.pipeline.tables.brokers.batch_sender import HalfMessage, HalfMessages
from pocketmq.pipeline.tables.brokers.broker_client import BrokerClient
from pocketmq.pipeline.tables.brokers.range_reader import RangeReader
from pocketmq.pipeline.tables.brokers.read_planner import Planner
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.testing import RocketMQCluster

from pipeline.brokers.cluster_sends import send_rows, sender_to
from pipeline.brokers.reading import options, read


@pytest.fixture(scope="module")
def cluster() -> Iterator[RocketMQCluster]:
    with RocketMQCluster(brokers=2) as cluster:
        yield cluster


def stored(cluster: RocketMQCluster, topic: str) -> dict[tuple[str, int], list[str]]:
    with BrokerClient(cluster.namesrv_addr).closing() as client:
        chosen = options(cluster, topic)
        return {
            (part.queue.broker_name, part.queue.queue_id): [
                f"{body.decode()} {message_id}"
                for records in RangeReader(client, part, chosen).batches()
                for body, message_id in zip(
                    records.column("body").to_pylist(), records.column("msgId").to_pylist(), strict=True
                )
            ]
            for part in Planner(client, chosen).batch()
        }


def test_rows_of_a_broker_s_queue_stay_there_in_order_over_all_batches_of_a_task(
    cluster: RocketMQCluster,
) -> None:
    cluster.grow("ordered", queues=2)
    batches = [
        {
            "body": [f"m{first + n:02}".encode() for n in range(4)],
            "brokerName": ["b0", "b0", "b1", "b1"],
            "queueId": pa.array([0, 1, 0, 1], pa.int32()),
            "messageId": [f"id{first + n:02}" for n in range(4)],
        }
        for first in range(0, 24, 4)
    ]
    send_rows(cluster.namesrv_addr, *batches, topic="ordered", batchRows="2")
    assert stored(cluster, "ordered") == {
        (broker, queue): [f"m{first:02} id{first:02}" for first in range(offset, 24, 4)]
        for offset, (broker, queue) in enumerate([("b0", 0), ("b0", 1), ("b1", 0), ("b1", 1)])
    }


@pytest.mark.parametrize("brokers", [["elsewhere-a", "elsewhere-b"], None])
def test_queues_of_brokers_that_the_target_does_not_have_keep_their_order_too(
    cluster: RocketMQCluster, brokers: list[str] | None
) -> None:
    topic = "mapped" if brokers else "unnamed"
    cluster.grow(topic, queues=2)
    batches = []
    for first in range(0, 12, 2):
        batch: dict[str, Any] = {
            "body": [f"m{first:02}".encode(), f"m{first + 1:02}".encode()],
            "queueId": pa.array([0, 0] if brokers else [0, 1], pa.int32()),
        }
        batches.append(batch | ({"brokerName": brokers} if brokers else {}))
    send_rows(cluster.namesrv_addr, *batches, topic=topic, batchRows="2")
    found = [[text.split()[0] for text in texts] for texts in stored(cluster, topic).values()]
    assert sorted(found) == [[f"m{number:02}" for number in range(first, 12, 2)] for first in (0, 1)], (
        "two queues, each in order, in two queues"
    )


@pytest.mark.parametrize("refusal", ["TOPIC_NOT_EXIST", "NO_PERMISSION"])
def test_a_send_to_a_broker_that_no_longer_takes_the_topic_is_tried_again_by_a_fresh_route(
    cluster: RocketMQCluster, refusal: str
) -> None:
    topic = f"moved-{refusal.lower().replace('_', '-')}"
    cluster.grow(topic, queues=1)
    with BrokerClient(cluster.namesrv_addr).closing() as client:
        client.run(client.route(topic))
        rule = cluster.faults.refuse(code="SEND_MESSAGE_V2", topic=topic, response=refusal, times=1)
        sender = sender_to(client)
        sender.send_one(topic, b"x", "", 0)
        sender.finish()
        assert rule.hit_count == 1
        assert read(client, options(cluster, topic)) == ["x"]
        cluster.faults.refuse(code="SEND_MESSAGE_V2", topic=topic, response=refusal, times=2)
        sender = sender_to(client)
        sender.send_one(topic, b"y", "", 0)
        with pytest.raises(PipelineError, match=f"code {ResponseCode[refusal].value}"):
            sender.finish()
        cluster.faults.clear()


def test_a_task_remembers_a_limited_number_of_half_messages(
    cluster: RocketMQCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_sender, "MAX_HALF_MESSAGES", 2)
    cluster.grow("half", queues=1)
    with BrokerClient(cluster.namesrv_addr).closing() as client:
        sender = sender_to(client)
        for number in range(2):
            sender.send_one("half", b"x", f"TRAN_MSG\x01true\x02UNIQ_KEY\x01id{number}\x02", 0, sys_flag=4)
        with pytest.raises(PipelineError, match="can send at most 2 messages: use more partitions"):
            sender.send_one("half", b"x", "", 0, sys_flag=4)
        sender.finish()
    assert sorted(half.message_id for half in sender.half_messages) == ["id0", "id1"]


def test_half_messages_come_back_as_they_were_added() -> None:
    added = [HalfMessage("T", "b0", 1 << 40, 2, None, "a"), HalfMessage("U", "b1", 3, 4, "t", "b")]
    halves = HalfMessages()
    for half in added:
        halves.add(half)
    assert list(halves) == added
