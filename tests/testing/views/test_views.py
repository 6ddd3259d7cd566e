"""Views show what the server knows, and change nothing by looking."""

import asyncio
import time

import pytest
from pocketmq.client import (
    LocalTransactionState,
    Message,
    MessageExt,
    PushConsumer,
    RetryLater,
    TransactionProducer,
)
from pocketmq.testing import RocketMQ, TestingError

from testing_acts import consuming
from waiting import until


async def test_a_running_consumer_is_seen_with_its_subscription_held_pulls_and_locks(mq: RocketMQ) -> None:
    topic, group = mq.topic("orders", queues=2), mq.group("billing")
    async with PushConsumer(
        group, lambda message: None, subscription={topic: "paid"}, namesrv_addr=mq.namesrv_addr, orderly=True
    ) as consumer:
        [member] = await mq.aio.wait_members(group)
        assert member.client_id == consumer.client_id
        assert (member.language, mq.members(group)) == ("PYTHON", [member])
        assert mq.subscriptions(group)[topic] == "paid"
        await until(lambda: len(mq.held_pulls(topic=topic)) == 2)
        assert sorted((pull.group, pull.queue_id, pull.offset) for pull in mq.held_pulls(topic=topic)) == [
            (group, 0, 0),
            (group, 1, 0),
        ]
        locks = mq.locks(topic=topic)
        assert sorted((lock.group, lock.queue_id, lock.client_id) for lock in locks) == [
            (group, 0, member.client_id),
            (group, 1, member.client_id),
        ]
    await until(lambda: not mq.held_pulls)
    assert (mq.members(group), mq.subscriptions(group)) == ([], {})


def test_delayed_and_timed_messages_are_listed_under_their_real_topic_until_they_are_delivered(
    mq: RocketMQ,
) -> None:
    topic = mq.topic("orders", queues=4)
    mq.send(topic, "by level", delay_level=5, queue_id=3)
    due_ms = time.time_ns() // 1_000_000 + 60_000
    mq.send(topic, "by time", properties={"TIMER_DELIVER_MS": str(due_ms)}, queue_id=2)
    assert [(one.topic, one.queue_id, one.text) for one in mq.delayed] == [
        (topic, 3, "by level"),
        (topic, 2, "by time"),
    ]
    assert mq.messages(topic) == []


async def test_half_messages_are_listed_until_their_transaction_ends(mq: RocketMQ) -> None:
    topic = mq.topic("orders", queues=1)
    outcomes = iter([LocalTransactionState.COMMIT_MESSAGE, LocalTransactionState.ROLLBACK_MESSAGE])

    def execute(message: Message, argument: object) -> LocalTransactionState:
        assert [half.topic for half in mq.half_messages] == [topic]
        return next(outcomes, LocalTransactionState.UNKNOW)

    def check(message: MessageExt) -> LocalTransactionState:
        return LocalTransactionState.UNKNOW

    async with TransactionProducer("producers", check, namesrv_addr=mq.namesrv_addr) as producer:
        for body in (b"committed", b"rolled back", b"open"):
            await producer.send_in_transaction(topic, body, execute)
            await mq.aio.wait_messages(topic, 1)
        await until(lambda: [half.text for half in mq.half_messages] == ["open"])
    assert [message.text for message in mq.messages(topic)] == ["committed"]


async def test_dead_letters_are_listed_under_the_topic_they_were_sent_to(mq: RocketMQ) -> None:
    topic, group = mq.topic("orders", queues=1), mq.group("billing")
    assert mq.dead_letters(group) == []

    async def listener(message: MessageExt) -> None:
        raise RetryLater(-1)  # -1: no more tries

    async with consuming(mq, group, listener, topic):
        await mq.aio.wait_members(group)
        await asyncio.to_thread(mq.send, topic, "poison")
        await mq.aio.wait_messages(f"%DLQ%{group}", 1)
    assert [(one.topic, one.text) for one in mq.dead_letters(group)] == [(topic, "poison")]


def test_explain_names_offset_and_rule_of_each_queue(mq: RocketMQ) -> None:
    topic, group = mq.topic("orders", queues=2), mq.group("billing")
    mq.send(topic, "one", queue_id=0)
    first, second = mq.explain(group, topic)
    assert (first.queue_id, first.offset, first.rule) == (0, 0, "B4")
    assert "still in memory" in first.because
    assert (second.queue_id, second.offset, second.rule) == (1, 0, "B6")
    with pytest.raises(TestingError, match=r"^there is no topic order; there are orders$"):
        mq.explain(group, "order")


def test_the_retry_topic_of_a_group_exists_at_once(mq: RocketMQ) -> None:
    group = mq.group("billing")
    name_server = mq.server.node.name_server
    assert name_server is not None
    assert mq.server.call(lambda: f"%RETRY%{group}" in name_server.routes.topics)
