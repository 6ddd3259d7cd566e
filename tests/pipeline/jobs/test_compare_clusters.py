"""Two clusters compared after a mirror: missing messages are placed, repeated ones named, another order is fine."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from pocketmq.client import Producer
from pocketmq.pipeline.jobs.answers import compare, find, latest
from pocketmq.pipeline.jobs.sql.message_input import MessageInput
from pocketmq.testing import EmbeddedServer, RocketMQ

from pipeline.jobs.reports import rows
from pipeline.moving.mirrors import mirror_of, run
from pipeline.topics import make


@pytest.fixture(scope="module")
def target() -> Iterator[RocketMQ]:
    with EmbeddedServer() as server:
        yield RocketMQ(server)


def compared(engine: Any, rocketmq: RocketMQ, target: RocketMQ, topic: str) -> Any:
    sides = [MessageInput(namesrv_addr=one.namesrv_addr, topics=topic) for one in (rocketmq, target)]
    return compare.build(engine, *sides)


def test_the_same_messages_in_other_queues_and_another_order_have_no_difference(
    engine: Any, rocketmq: RocketMQ, target: RocketMQ
) -> None:
    topic = rocketmq.topic("shuffled", queues=4)
    make(target, topic)
    for number in range(20):
        rocketmq.send(topic, f"m{number}", queue_id=3 - number % 4)
    run(mirror_of(rocketmq, target, topic))
    report = compared(engine, rocketmq, target, topic)
    assert report.findings == []
    assert report.lead == f"{rocketmq.namesrv_addr} on the left, {target.namesrv_addr} on the right."


def test_what_is_missing_is_placed_at_the_start_or_the_end_of_its_queue(
    engine: Any, rocketmq: RocketMQ, target: RocketMQ
) -> None:
    """A mirror that began late, or a side that deleted its oldest messages; and one that is behind a live topic."""
    topic = rocketmq.topic("windows", queues=2)
    latest_only = mirror_of(rocketmq, target, topic, starts_at_end=True)
    for number, count in enumerate((6, 4, 2)):
        for queue_id in range(2):
            for _ in range(count):
                rocketmq.send(topic, f"{number}", queue_id=queue_id)
        if number < 2:
            run(latest_only)
    report = compared(engine, rocketmq, target, topic)
    assert report.findings == [f"{topic}: 16 messages missing in {target.namesrv_addr}"]
    assert [(row["missingIn"], row["place"], row["messages"]) for row in rows(report, "places")] == [
        ("right", "end", 4),
        ("right", "start", 12),
    ]
    first, *_, last = rows(report, "missing")
    assert (first["place"], first["queueId"], first["queueOffset"]) == ("start", 0, 0)
    assert (last["place"], last["queueId"], last["queueOffset"]) == ("end", 1, 11)


def test_a_message_between_others_and_one_that_is_there_twice_are_named(
    engine: Any, rocketmq: RocketMQ, target: RocketMQ
) -> None:
    topic = rocketmq.topic("twice", queues=1)
    rocketmq.send(topic, "m0", queue_id=0)
    run(mirror_of(rocketmq, target, topic))
    run(mirror_of(rocketmq, target, topic, name="second"))
    target.send(topic, "its own", queue_id=0)
    rocketmq.send(topic, "m1", queue_id=0)
    run(mirror_of(rocketmq, target, topic))
    report = compared(engine, rocketmq, target, topic)
    assert report.findings == [
        f"{topic}: 1 message missing in {rocketmq.namesrv_addr}",
        f"{topic}: 1 message more often in {target.namesrv_addr}",
    ]
    assert [(row["missingIn"], row["place"]) for row in rows(report, "missing")] == [("left", "between")]
    assert [(row["leftMessages"], row["rightMessages"]) for row in rows(report, "repeated")] == [(1, 2)]


def test_compressed_bodies_are_compared_found_and_the_latest(
    engine: Any, rocketmq: RocketMQ, target: RocketMQ
) -> None:
    topic = rocketmq.topic("packed", queues=1)

    async def send() -> None:
        async with Producer(
            "p", namesrv_addr=rocketmq.namesrv_addr, compress_msg_body_over_howmuch=100
        ) as producer:
            for number in range(3):
                await producer.send(topic, b"text %d " % number * 100, keys="k")

    asyncio.run(send())
    run(mirror_of(rocketmq, target, topic))
    assert compared(engine, rocketmq, target, topic).findings == []
    for side in (rocketmq, target):
        source = MessageInput(namesrv_addr=side.namesrv_addr, topics=topic)
        assert find.build(engine, source, find.Wanted(text="text 1 text")).findings == ["1 message found"]
        assert [row["body"] for row in rows(latest.build(engine, source), "latest")] == [b"text 2 " * 100]
