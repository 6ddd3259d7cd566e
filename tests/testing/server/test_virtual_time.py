"""Virtual time with clients: days of a server's life, each within seconds of the wall's time."""

import asyncio
import time
from collections.abc import Iterable, Iterator
from typing import cast

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.errors import Refusal
from pocketmq.client import (
    LocalTransactionState,
    MessageExt,
    Producer,
    PushConsumer,
    RetryLater,
    TransactionProducer,
)
from pocketmq.protocol.bodies.client import LockBatchRequestBody
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import dlq_topic
from pocketmq.protocol.requests.membership import LockBatchMq
from pocketmq.protocol.requests.pop import PopMessage
from pocketmq.protocol.requests.pull import PullMessage
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.testing import EmbeddedServer, RocketMQ

from testing_acts import Texts, pull_request
from waiting import until

RETRY_SECONDS = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
LEVEL_SECONDS = (1, 5, *RETRY_SECONDS)


@pytest.fixture
def mq() -> Iterator[RocketMQ]:
    with EmbeddedServer(virtual_time=True) as server:
        yield RocketMQ(server)


def passed_seconds(mq: RocketMQ, since_ms: int) -> float:
    return (mq.clock.now_ms() - since_ms) / 1000


# -- delayed and timed messages


def test_the_eighteen_delay_levels_come_exactly_on_time(mq: RocketMQ) -> None:
    topic, start = mq.topic("levels"), mq.clock.now_ms()
    for level in range(1, 19):
        mq.send(topic, str(level), delay_level=level)
    for level, seconds in enumerate(LEVEL_SECONDS, 1):
        mq.clock.advance(seconds - passed_seconds(mq, start) - 0.001)
        assert len(mq.messages(topic)) == level - 1
        mq.clock.advance("1ms")
        newest = mq.messages(topic)[-1]
        assert (newest.text, newest.store_timestamp) == (str(level), start + seconds * 1000)


@pytest.mark.parametrize("ahead", ["0s", "5h"])
def test_a_message_for_a_time_of_the_clock_is_delivered_at_that_time(mq: RocketMQ, ahead: str) -> None:
    topic = mq.topic("reminders")
    mq.clock.advance(ahead)
    due_ms = mq.clock.now_ms() + 7_200_000
    mq.send(topic, "in two hours", properties={"TIMER_DELIVER_MS": str(due_ms)})
    mq.clock.advance("1h59m58s")
    assert mq.messages(topic) == []
    mq.clock.advance("3s")
    assert len(mq.messages(topic)) == 1


def test_a_clients_time_counts_from_where_the_clock_stands(mq: RocketMQ) -> None:
    """The clock has stood still for a while when a client with the wall's clock asks for a time."""
    topic = mq.topic("reminders")
    time.sleep(1.2)  # by as much the clock stands behind the wall's
    due_ms = int(time.time() * 1000) + 60_000
    mq.send(topic, "in a minute", properties={"TIMER_DELIVER_MS": str(due_ms)})
    mq.clock.advance("58s")
    assert mq.messages(topic) == []
    mq.clock.advance("3s")
    assert len(mq.messages(topic)) == 1


def test_seventy_two_hours_of_a_wheel_of_100_ms_are_not_walked_slot_by_slot() -> None:
    with EmbeddedServer(virtual_time=True, timerPrecisionMs=100) as server:
        fine = RocketMQ(server)
        fine.send("reminders", "last", properties={"TIMER_DELAY_SEC": str(71 * 3600)})
        fine.send("reminders", "first", properties={"TIMER_DELAY_MS": "1500"})
        before = server.broker.state.timers.fired  # type: ignore[attr-defined]
        fine.clock.advance("72h")
        fired = server.broker.state.timers.fired - before  # type: ignore[attr-defined]
        assert 0 < fired < 1000
        assert [message.text for message in fine.messages("reminders")] == ["first", "last"]


def test_the_next_event_is_the_next_delivery(mq: RocketMQ) -> None:
    topic, start = mq.topic("reminders"), mq.clock.now_ms()
    assert mq.clock.advance_to_next() is None
    mq.send(topic, "b", delay_level=5)
    mq.send(topic, "a", delay_level=3)
    assert mq.clock.advance_to_next() == start + 10_000
    assert [message.text for message in mq.messages(topic)] == ["a"]
    assert mq.clock.advance_to_next() == start + 60_000
    assert [message.text for message in mq.messages(topic)] == ["a", "b"]
    assert mq.clock.advance_to_next() is None
    assert mq.clock.now_ms() == start + 60_000


# -- retries


async def test_a_message_that_always_fails_becomes_a_dead_letter_after_16_retries(mq: RocketMQ) -> None:
    topic, group = mq.topic("orders", queues=1), mq.group("billing")
    start, seen = mq.clock.now_ms(), list[tuple[int, float]]()

    async def fail(message: MessageExt) -> None:
        seen.append((message.reconsume_times, passed_seconds(mq, start)))
        raise RetryLater

    async with PushConsumer(group, fail, subscription={topic: "*"}, namesrv_addr=mq.namesrv_addr) as consumer:
        await consumer.wait_assigned()
        await asyncio.to_thread(mq.send, topic, "never good")
        for retry in range(16):
            await until(lambda retry=retry: len(seen) > retry and mq.delayed)
            await mq.clock.aio.advance_to_next()
        await until(lambda: len(seen) == 17 and mq.messages(dlq_topic(group)))
    due, expected = 0, [(0, 0.0)]
    for number, seconds in enumerate(RETRY_SECONDS, 1):
        due += seconds
        expected.append((number, float(due)))
    assert seen == expected
    assert due == 4 * 3600 + 45 * 60 + 40
    assert [letter.text for letter in mq.messages(dlq_topic(group))] == ["never good"]


# -- transactions


async def test_a_producer_is_asked_at_every_check_until_the_broker_gives_up(mq: RocketMQ) -> None:
    topic, asked = mq.topic("orders"), list[float]()
    start = mq.clock.now_ms()

    async def unknown(*_: object) -> LocalTransactionState:
        return LocalTransactionState.UNKNOW

    async def check(message: MessageExt) -> LocalTransactionState:
        asked.append(passed_seconds(mq, start))
        return LocalTransactionState.UNKNOW

    async with TransactionProducer("payers", check, namesrv_addr=mq.namesrv_addr) as producer:
        await producer.send_in_transaction(topic, b"open", unknown)
        for number in range(15):
            await mq.clock.aio.advance("30s")
            await until(lambda number=number: len(asked) == number + 1)
        await mq.clock.aio.advance("1h")
    assert asked == [30.0 * number for number in range(1, 16)]
    assert [message.text for message in mq.messages("TRANS_CHECK_MAX_TIME_TOPIC")] == ["open"]
    assert mq.messages(topic) == []


async def test_an_answer_to_a_check_commits_even_long_after_the_log_was_made(mq: RocketMQ) -> None:
    """Three virtual days ahead of its producer's clock, a half message is as young as its age by the broker's."""
    topic = mq.topic("orders")
    await mq.clock.aio.advance("80h")

    async def unknown(*_: object) -> LocalTransactionState:
        return LocalTransactionState.UNKNOW

    async def commit(message: MessageExt) -> LocalTransactionState:
        return LocalTransactionState.COMMIT_MESSAGE

    async with TransactionProducer("payers", commit, namesrv_addr=mq.namesrv_addr) as producer:
        await producer.send_in_transaction(topic, b"paid", unknown)
        await mq.clock.aio.advance("5s")
        assert mq.messages(topic) == []
        await mq.clock.aio.advance("1m")
        await until(lambda: mq.messages(topic))
    assert mq.messages("TRANS_CHECK_MAX_TIME_TOPIC") == []


# -- pops, pulls, locks


def pop(topic: str, group: str, **more: int) -> PopMessage:
    fields = {"max_msg_nums": 32, "invisible_time": 60_000, "poll_time": 0, "init_mode": 0, **more}
    return PopMessage(
        consumer_group=group, topic=topic, queue_id=-1, born_time=int(time.time() * 1000), **fields
    )


async def code_of(mq: RocketMQ, request: PullMessage | PopMessage) -> int:
    """The code of a refusal; the request may be held, but not longer than 5 s by the wall."""
    with pytest.raises(Refusal) as refused:
        await asyncio.to_thread(mq.server.request, request)
    return refused.value.code


@pytest.mark.parametrize("pops", [False, True])
async def test_a_held_request_ends_by_virtual_time(mq: RocketMQ, pops: bool) -> None:
    topic, group = mq.topic("orders"), mq.group("billing")
    request = pop(topic, group, poll_time=15_000) if pops else pull_request(topic, group, wait_ms=15_000)
    asking = asyncio.create_task(code_of(mq, request))
    await until(lambda: mq.server.broker.popping.waiters.total if pops else mq.held_pulls)
    await mq.clock.aio.advance("10s")
    assert not asking.done()
    await mq.clock.aio.advance("10s")
    assert await asking == (ResponseCode.POLLING_TIMEOUT if pops else ResponseCode.PULL_NOT_FOUND)


async def test_held_requests_end_by_the_walls_time_while_the_clock_stands_still() -> None:
    short = {"longPollingEnable": False, "shortPollingTimeMills": 50}
    with EmbeddedServer(short, virtual_time=True) as server:
        mq = RocketMQ(server)
        topic, group = mq.topic("orders"), mq.group("billing")
        start = mq.clock.now_ms()
        assert await code_of(mq, pull_request(topic, group, wait_ms=15_000)) == ResponseCode.PULL_NOT_FOUND
        assert await code_of(mq, pop(topic, group, poll_time=1100)) == ResponseCode.POLLING_TIMEOUT
        assert mq.clock.now_ms() == start


async def test_the_age_of_a_pop_is_counted_by_the_walls_time(mq: RocketMQ) -> None:
    topic, group = mq.topic("orders"), mq.group("billing")
    mq.send(topic, "one")
    await mq.clock.aio.advance("3d")
    assert mq.server.request(pop(topic, group)).invisible_time == 60_000


def test_locks_expire_after_a_minute_without_renewal(mq: RocketMQ) -> None:
    topic, group = mq.topic("orders"), mq.group("billing")
    queue = MessageQueue(topic, mq.server.broker.config.broker_name, 0)

    def lock(client: str) -> int:
        body = LockBatchRequestBody(consumer_group=group, client_id=client, mq_set=[queue])
        mq.server.request(LockBatchMq(), body.encode())
        return len([one for one in mq.locks if one.client_id == client])

    assert lock("one") == 1
    mq.clock.advance("60s")
    assert lock("two") == 0
    mq.clock.advance("1s")
    assert lock("two") == 1


# -- clients that are connected


def expire_clients(broker: Broker) -> None:
    """The scans that the broker makes every ten seconds of the wall's time."""
    scans = [one.action for one in broker.membership.periodic() if one.name in ("consumers", "producers")]
    assert len(scans) == 2
    for scan in scans:
        for _ in cast(Iterable[None], scan()):
            pass


async def test_a_jump_of_days_neither_loses_nor_expires_a_client(mq: RocketMQ) -> None:
    topic, group = mq.topic("orders", queues=1), mq.group("billing")
    seen = Texts()
    consumer = PushConsumer(group, seen, subscription={topic: "*"}, namesrv_addr=mq.namesrv_addr)
    async with consumer, Producer("shop", namesrv_addr=mq.namesrv_addr) as producer:
        await consumer.wait_assigned()
        (before,) = mq.members(group)
        for day in range(3):
            await mq.clock.aio.advance("1d")
            mq.server.call(expire_clients, mq.server.broker)
            assert mq.members(group) == [before]
            await producer.send(topic, b"day %d" % day)
            await until(lambda day=day: len(seen) == day + 1)
    assert seen == ["day 0", "day 1", "day 2"]


# -- retention: the second act of the puzzle


async def test_a_new_group_starts_at_the_end_once_retention_has_deleted_the_first_file() -> None:
    small = {"mappedFileSizeCommitLog": 1 << 16, "deleteWhen": "04"}
    with EmbeddedServer(small, virtual_time=True) as server:
        mq = RocketMQ(server)
        topic = mq.topic("orders", queues=1)
        for number in range(150):
            mq.send(topic, b"x" * 1000 + b"%d" % number)
        assert {place.offset for place in mq.explain("before", topic)} == {0}
        mq.clock.advance("71h")
        assert mq.messages(topic)[0].queue_offset == 0
        mq.clock.advance("25h")
        first = mq.messages(topic)[0].queue_offset
        assert first > 0
        assert {place.offset for place in mq.explain("after", topic)} == {150}
        seen: list[int] = []

        async def note(message: MessageExt) -> None:
            seen.append(message.queue_offset)

        async with PushConsumer(
            "after", note, subscription={topic: "*"}, namesrv_addr=mq.namesrv_addr
        ) as consumer:
            await consumer.wait_assigned()
            await until(lambda: mq.held_pulls)
            await asyncio.to_thread(mq.send, topic, "new")
            await until(lambda: seen)
        assert seen == [150]


def test_a_file_written_a_virtual_hour_ago_is_kept() -> None:
    with EmbeddedServer(virtual_time=True, mappedFileSizeCommitLog=1 << 16, deleteWhen="04") as server:
        mq = RocketMQ(server)
        topic = mq.topic("orders", queues=1)
        mq.clock.advance("95h")
        for _ in range(150):
            mq.send(topic, b"x" * 1000)
        mq.clock.advance("48h")
        assert len(mq.messages(topic)) == 150
        mq.clock.advance("48h")
        assert len(mq.messages(topic)) < 150
