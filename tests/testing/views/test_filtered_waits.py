"""Waits for groups that want a part of a topic only: they end with the last message that the group wants.

The offset of a group passes the messages behind that one when a held pull ends, 15 to 20 s later; no wait needs that.
The time limit of a wait is far below that.
"""

import asyncio

import pytest
from pocketmq.client import MessageExt, PushConsumer
from pocketmq.testing import MessagesMissingError, RocketMQ
from pocketmq.testing.remote import RemoteRocketMQ

from testing_acts import Texts, consuming

SERVER = {"enablePropertyFilter": True}


def consumer(
    mq: RocketMQ | RemoteRocketMQ,
    topic: str,
    group: str,
    listener: Texts,
    expression: str,
    kind: str = "TAG",
    *,
    orderly: bool = False,
) -> PushConsumer:
    made = consuming(mq, group, listener, orderly=orderly)
    made.subscribe(topic, expression, kind)
    return made


def send_tags(mq: RocketMQ | RemoteRocketMQ, topic: str, tags: str) -> None:
    for number, tag in enumerate(tags):
        mq.send(topic, f"{tag}{number}", tags=tag, properties={"price": "1" if tag == "a" else "9"})


@pytest.mark.parametrize(
    ("expression", "kind", "orderly"),
    [("a", "TAG", False), ("a", "TAG", True), ("price < 5", "SQL92", False), ("price < 5", "SQL92", True)],
)
@pytest.mark.parametrize(("queues", "tags"), [(1, "aab"), (1, "bab"), (4, "aaaaaaaabbbbbbbb")])
async def test_waits_end_when_all_wanted_messages_are_consumed(
    mq: RocketMQ, expression: str, kind: str, orderly: bool, queues: int, tags: str
) -> None:
    topic, group, seen = mq.topic("orders", queues=queues), mq.group("billing"), Texts()
    await asyncio.to_thread(send_tags, mq, topic, tags)
    async with consumer(mq, topic, group, seen, expression, kind, orderly=orderly):
        await mq.aio.wait_members(group)
        await mq.aio.wait_consumed(topic, group)
        assert len(seen) == tags.count("a")
        await mq.aio.wait_idle(group)
        await asyncio.to_thread(send_tags, mq, topic, "ba" + "b" * queues)
        await mq.aio.wait_consumed(topic, group)
        await mq.aio.wait_idle(group)
        assert len(seen) == tags.count("a") + 1


async def test_a_wanted_message_behind_unwanted_ones_is_waited_for(mq: RocketMQ) -> None:
    topic, group, gate = mq.topic("orders", queues=1), mq.group("billing"), asyncio.Event()

    async def listener(message: MessageExt) -> None:
        await gate.wait()

    await asyncio.to_thread(send_tags, mq, topic, "bba")
    async with consuming(mq, group, listener, subscription={topic: "a"}):
        await mq.aio.wait_members(group)
        with pytest.raises(
            MessagesMissingError, match=r"^billing has not consumed 1 of 3 messages of orders"
        ):
            await mq.aio.wait_consumed(topic, group, timeout_seconds=0.2)
        gate.set()
        await mq.aio.wait_consumed(topic, group)


async def test_two_tags_of_one_hash_are_two_tags(mq: RocketMQ) -> None:
    """`Aa` and `BB` have the same hash in the queue's entry; the consumer drops what it does not want."""
    topic, group, seen = mq.topic("orders", queues=1), mq.group("billing"), Texts()
    async with consumer(mq, topic, group, seen, "Aa"):
        await mq.aio.wait_members(group)
        await asyncio.to_thread(mq.send, topic, "wanted", tags="Aa")
        await asyncio.to_thread(mq.send, topic, "not wanted", tags="BB")
        await mq.aio.wait_consumed(topic, group)
        assert seen == ["wanted"]


async def test_a_consumer_that_has_ended_has_consumed_what_it_wanted(mq: RocketMQ) -> None:
    """Its subscription is in the log of the test's requests."""
    topic, group, seen = mq.topic("orders", queues=1), mq.group("billing"), Texts()
    await asyncio.to_thread(send_tags, mq, topic, "aab")
    async with consumer(mq, topic, group, seen, "a"):
        await mq.aio.wait_members(group)
        await mq.aio.wait_consumed(topic, group)
    await mq.aio.wait_members(group, 0)
    await mq.aio.wait_consumed(topic, group)
    await asyncio.to_thread(send_tags, mq, topic, "a")
    with pytest.raises(MessagesMissingError, match=r"^billing has not consumed 1 of 4 messages of orders"):
        await mq.aio.wait_consumed(topic, group, timeout_seconds=0.05)


@pytest.mark.parametrize(("expression", "kind"), [("a", "TAG"), ("price < 5", "SQL92")])
async def test_waits_over_the_wire_know_filters_too(mq: RocketMQ, expression: str, kind: str) -> None:
    topic, group, seen = mq.topic("orders", queues=1), mq.group("billing"), Texts()
    await asyncio.to_thread(send_tags, mq, topic, "aab")
    remote = RemoteRocketMQ(mq.namesrv_addr)
    await asyncio.to_thread(remote.start)
    try:
        async with consumer(mq, topic, group, seen, expression, kind):
            await remote.aio.wait_members(group)
            await remote.aio.wait_consumed(topic, group)
            assert len(seen) == 2
            await remote.aio.wait_idle(group)
            await asyncio.to_thread(send_tags, mq, topic, "bab")
            await remote.aio.wait_consumed(topic, group)
            assert len(seen) == 3
    finally:
        await asyncio.to_thread(remote.stop)
