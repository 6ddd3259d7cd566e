"""Waits end as soon as what they wait for is so, with consumers that stay open, and say "n of m" otherwise."""

import asyncio
import threading
from pathlib import Path

import pytest
from pocketmq.client import MessageExt, MessageModel, RetryLater
from pocketmq.testing import MessagesMissingError, RocketMQ, WouldBlockError

from testing_acts import Texts, consuming

SERVER = {"messageDelayLevel": "1s"}


async def test_wait_consumed_ends_before_the_consumer_has_committed(mq: RocketMQ) -> None:
    """A consumer commits first after 10 s."""
    topic, group, seen = mq.topic("orders", queues=2), mq.group("billing"), Texts()
    async with consuming(mq, group, seen, topic):
        await mq.aio.wait_members(group, 1)
        for turn in range(3):
            for number in range(4):
                await asyncio.to_thread(mq.send, topic, f"{turn}-{number}")
            await mq.aio.wait_messages(topic, 4 * turn + 4)
            await mq.aio.wait_consumed(topic, group)
            assert len(seen) == 4 * turn + 4
        assert mq.lag(topic, group) > 0, "nothing was committed yet"


async def test_wait_idle_waits_for_every_topic_and_for_retries(mq: RocketMQ) -> None:
    orders, returns, group = mq.topic("orders", queues=1), mq.topic("returns", queues=1), mq.group("billing")
    seen: list[str] = []
    gate = asyncio.Event()

    async def listener(message: MessageExt) -> None:
        await gate.wait()
        seen.append(message.topic)

    async with consuming(mq, group, listener, subscription={orders: "*", returns: "paid || sent"}):
        await mq.aio.wait_members(group)
        assert mq.subscriptions(group)[returns] == "paid || sent"
        await mq.aio.wait_idle(group)
        await asyncio.to_thread(mq.send, orders, "one")
        await asyncio.to_thread(mq.send, returns, "two", tags="paid")
        with pytest.raises(
            MessagesMissingError, match=r"^billing has not consumed 1 of 1 messages of .* within 0\.2 s$"
        ):
            await mq.aio.wait_idle(group, timeout_seconds=0.2)
        gate.set()
        await mq.aio.wait_idle(group)
        assert sorted(seen) == [orders, returns]


async def test_message_sent_back_counts_as_consumed_and_its_retry_is_waited_for_by_idle(mq: RocketMQ) -> None:
    topic, group = mq.topic("orders", queues=1), mq.group("billing")
    tries: list[int] = []

    async def listener(message: MessageExt) -> None:
        tries.append(message.reconsume_times)
        if message.reconsume_times == 0:
            raise RetryLater(1)

    async with consuming(mq, group, listener, topic):
        await mq.aio.wait_members(group)
        await asyncio.to_thread(mq.send, topic, "again")
        await mq.aio.wait_consumed(topic, group)
        [waiting] = mq.delayed
        assert (waiting.topic, waiting.text) == (f"%RETRY%{group}", "again")
        await mq.aio.wait_messages(f"%RETRY%{group}", 1)
        await mq.aio.wait_idle(group)
        assert tries == [0, 1]
        assert not mq.delayed


def test_error_of_each_wait_says_how_many_of_how_many(mq: RocketMQ) -> None:
    mq.send("orders", "one", queue_id=0)
    for wait, complaint in (
        (lambda: mq.wait_messages("orders", 3, timeout_seconds=0.01), "1 of 3 messages arrived in orders"),
        (
            lambda: mq.wait_consumed("orders", "billing", timeout_seconds=0.01),
            "billing has not consumed 1 of 1 messages of orders",
        ),
        (lambda: mq.wait_members("billing", 2, timeout_seconds=0.01), "billing has 0 of 2 members"),
        (lambda: mq.wait_idle("billing", timeout_seconds=0.01), "billing has 0 of 1 members"),
    ):
        with pytest.raises(MessagesMissingError, match=rf"^{complaint} within 0\.01 s$"):
            wait()


async def test_waits_refuse_to_block_a_loop_and_name_their_async_form(mq: RocketMQ) -> None:
    for name, arguments in (
        ("wait_messages", ("orders", 0)),
        ("wait_consumed", ("orders", "billing")),
        ("wait_members", ("billing", 1)),
        ("wait_idle", ("billing",)),
    ):
        with pytest.raises(WouldBlockError, match=rf"await rocketmq\.aio\.{name}"):
            getattr(mq, name)(*arguments)


async def test_cancelled_wait_ends(mq: RocketMQ) -> None:
    waiting = asyncio.create_task(mq.aio.wait_messages("orders", 1))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_consumer_that_runs_for_many_tests_goes_on_after_each_reset(mq: RocketMQ) -> None:
    """Its topic and group were made before the tests, so it keeps its offsets, and reads what each test sends."""
    topic, group, seen = mq.topic("orders", queues=2), mq.group("billing"), Texts()
    async with consuming(mq, group, seen, topic):
        await mq.aio.wait_members(group)
        mark = await asyncio.to_thread(mq.server.mark)
        for turn in range(3):
            await asyncio.to_thread(mq.send, topic, str(turn))
            await asyncio.to_thread(mq.send, "of-this-test", str(turn))
            await mq.aio.wait_consumed(topic, group)
            assert seen == [str(number) for number in range(turn + 1)]
            await asyncio.to_thread(mq.server.reset, mark)
            assert mq.messages("of-this-test") == []
            assert len(mq.members(group)) == 1


def test_a_wait_for_names_that_do_not_exist_says_so(mq: RocketMQ) -> None:
    """A forgotten prefix must not pass."""
    topic, group = mq.topic("orders"), mq.group("billing")
    for wait, complaint in (
        (
            lambda: mq.wait_consumed("no-such-topic", group, timeout_seconds=0.01),
            "there is no topic no-such-topic; there are orders",
        ),
        (
            lambda: mq.wait_consumed(topic, "no-such-group", timeout_seconds=0.01),
            "there is no group no-such-group",
        ),
        (
            lambda: mq.wait_members("no-such-group", 0, timeout_seconds=0.01),
            "there is no group no-such-group",
        ),
        (
            lambda: mq.wait_messages("no-such-topic", 0, timeout_seconds=0.01),
            "there is no topic no-such-topic; there are orders",
        ),
    ):
        with pytest.raises(MessagesMissingError, match=rf"^{complaint} within 0\.01 s$"):
            wait()
    mq.wait_consumed(topic, group)
    assert mq.wait_members(group, 0) == []
    assert mq.wait_messages(topic, 0) == []


def test_a_name_may_appear_while_it_is_waited_for(mq: RocketMQ) -> None:
    group = mq.group("billing")
    sending = threading.Thread(target=lambda: mq.wait_messages("orders", 1))
    sending.start()
    mq.send("orders", "one")
    sending.join()
    mq.server.call(mq.server.broker.offsets.commit, "orders", group, mq.messages("orders")[0].queue_id, 1)
    mq.wait_consumed("orders", group)


async def test_each_member_of_a_broadcasting_group_is_asked_and_one_that_is_silent_has_consumed_nothing(
    mq: RocketMQ, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCKETMQ_CLIENT_LOCAL_OFFSET_STORE_DIR", str(tmp_path))
    topic, group = mq.topic("news", queues=1), mq.group("readers")
    seen = Texts()
    broadcast = {"message_model": MessageModel.BROADCASTING}
    async with (
        consuming(mq, group, seen, topic, instance_name="one", **broadcast),
        consuming(mq, group, seen, topic, instance_name="two", **broadcast),
    ):
        members = await mq.aio.wait_members(group, 2)
        await asyncio.to_thread(mq.send, topic, "to all")
        await mq.aio.wait_consumed(topic, group)
        assert seen == ["to all"] * 2, "each of them is asked"
        rule = await asyncio.to_thread(
            mq.faults.silence, code="GET_CONSUMER_RUNNING_INFO", client_id=members[0].client_id, times=None
        )
        with pytest.raises(MessagesMissingError, match=r"^readers has not consumed 1 of 1 messages of news"):
            await mq.aio.wait_consumed(topic, group, timeout_seconds=0.05)
        assert rule.hits
        await asyncio.to_thread(rule.remove)
        await mq.aio.wait_consumed(topic, group)
