"""Pop consumption: receipts, requests to the broker, and acknowledgements after the listener."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.client import ConsumeFromWhere, PushConsumer, RetryLater
from pocketmq.client.connections.connection import Connection
from pocketmq.client.hooks.hooks import FilterMessageContext, FilterMessageHook
from pocketmq.client.push.pop_api import attach_receipts, batch_ack_body, receipt_of
from pocketmq.client.push.pop_queues import level_after_last_try, retry_invisible_seconds
from pocketmq.client.values.message import MessageExt, as_message
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.pop_receipt import Receipt, parse_receipt
from pocketmq.protocol.requests.pop import PopMessageReply

from client_vectors import feature_vectors
from client_waits import Asked, Seen, port_of
from pop_broker import PopBroker, record
from ports import fixed_port
from waiting import until

RETRY = "%RETRY%g_T"


def test_receipts_are_the_official_texts() -> None:
    for (retry,), expected in feature_vectors("receipt"):
        receipt = Receipt(100, 1700000000000, 60000, 3, retry or "", "broker-a", 2, 117)
        assert str(receipt) == expected
        assert parse_receipt(expected or "") == receipt
        assert receipt.visible_again_ms == 1700000060000


def test_the_flag_of_a_receipt_names_the_topic_the_message_is_stored_in() -> None:
    for (text,), expected in feature_vectors("real-topic"):
        assert parse_receipt(text or "").real_topic("T", "g") == expected


def reply(**changes: Any) -> PopMessageReply:
    fields: dict[str, Any] = {
        "pop_time": 1700000000000,
        "invisible_time": 60000,
        "revive_qid": 3,
        "rest_num": 0,
        "start_offset_info": feature_vectors("start-offsets")[0][1],
        "msg_offset_info": feature_vectors("message-offsets")[0][1],
    }
    return PopMessageReply(**{**fields, **changes})


def popped(*places: tuple[str, int]) -> list[MessageExt]:
    return [as_message(record(topic, offset, b"%d" % offset), "x") for topic, offset in places]


def test_each_message_gets_its_origin_from_the_reply() -> None:
    messages = popped(("T", 5), ("T", 6), (RETRY, 9), ("T", 8))
    attach_receipts(messages, reply(), topic="T", broker_name="b")
    assert [message.properties["POP_CK"] for message in messages] == [
        "5 1700000000000 60000 3 0 b 0 5",
        "5 1700000000000 60000 3 0 b 0 6",
        "9 1700000000000 60000 3 1 b 0 9",
        "5 1700000000000 60000 3 0 b 0 8",
    ]
    assert {message.topic for message in messages} == {"T"}
    assert {message.broker_name for message in messages} == {"b"}
    assert {message.properties["1ST_POP_TIME"] for message in messages} == {"1700000000000"}


def test_without_infos_the_first_offset_begins_the_span() -> None:
    messages = popped(("T", 5), ("T", 7))
    attach_receipts(messages, reply(start_offset_info=None), topic="T", broker_name="b")
    assert [receipt_of(message).start_offset for message in messages] == [5, 5]


@pytest.mark.parametrize(
    "changes",
    [
        {"start_offset_info": "0 1 5"},
        {"msg_offset_info": "0 0 5"},
        {"start_offset_info": "0 0"},
        {"start_offset_info": "0 x 5"},
        {"msg_offset_info": "0 0 5,x"},
    ],
)
def test_a_reply_that_does_not_fit_its_messages_is_refused(changes: dict[str, str]) -> None:
    with pytest.raises(BodyError):
        attach_receipts(popped(("T", 5), ("T", 6)), reply(**changes), topic="T", broker_name="b")


def test_a_message_behind_one_that_has_its_receipt_is_not_left_without_one() -> None:
    messages = popped(("T", 5), ("T", 6))
    messages[0].properties["POP_CK"] = "5 1700000000000 60000 3 0 b 0 5"
    with pytest.raises(BodyError, match="says nothing of T queue 0"):
        attach_receipts(messages, reply(msg_offset_info=""), topic="T", broker_name="b")


@given(
    st.text()
    | st.lists(st.integers() | st.sampled_from(["b", "0"]), max_size=9).map(
        lambda parts: " ".join(map(str, parts))
    )
)
def test_no_text_raises_another_error_than_a_refused_receipt(text: str) -> None:
    try:
        assert parse_receipt(str(parse_receipt(text))) == parse_receipt(text)
    except BodyError:
        pass


@given(st.text("0123 ,;x"), st.text("0123 ,;x"))
def test_no_reply_raises_another_error_than_a_refusal(starts: str, offsets: str) -> None:
    try:
        attach_receipts(
            popped(("T", 5)),
            reply(start_offset_info=starts, msg_offset_info=offsets),
            topic="T",
            broker_name="b",
        )
    except BodyError:
        pass


def test_acks_of_one_span_are_bits_of_one_entry() -> None:
    receipts = [Receipt(100, 1, 60, 3, "0", "b", 0, offset) for offset in (100, 101, 108)]
    receipts.append(Receipt(7, 2, 60, 4, "1", "b", 1, 7))
    body = batch_ack_body(receipts, "b", "T", "g")
    assert body.acks is not None
    assert [list(ack.offsets()) for ack in body.acks] == [[100, 101, 108], [7]]
    assert [(ack.retry, ack.queue_id, ack.revive_queue_id) for ack in body.acks] == [("0", 0, 3), ("1", 1, 4)]


def test_failed_messages_stay_hidden_longer_each_time() -> None:
    assert [retry_invisible_seconds(0, tries) for tries in (0, 1, 2, 15, 99)] == [10, 30, 60, 7200, 7200]
    assert [retry_invisible_seconds(level, 5) for level in (1, 3, 99, -1)] == [30, 120, 7200, 10]


def test_after_the_last_try_the_age_decides() -> None:
    seconds = {0: 0, 9: 0, 10: 1, 29: 1, 30: 2, 3600: 15, 7200: 16, 14400: 16, 14401: None}
    assert {age: level_after_last_try(age * 1000) for age in seconds} == seconds


# -- a consumer and a broker


def consumer(broker: PopBroker, listener: Any = None, **options: Any) -> PushConsumer:
    options = {"subscription": {"T": "*"}, **options}
    return PushConsumer("g", listener, namesrv_addr=broker.address, client_rebalance=False, **options)


def connection_of(member: PushConsumer) -> Connection:
    """The connection over which it pops."""
    instance = member._running
    connection = instance.connections.live(instance.routes.master("b", main_port=True) or "")
    assert connection is not None
    return connection


async def test_messages_are_popped_and_acknowledged_one_by_one() -> None:
    seen = Seen()
    async with PopBroker() as broker, consumer(broker, seen) as member:
        broker.bring(
            *(record("T", offset, b"%d" % offset) for offset in range(3)), record(RETRY, 9, b"9", tries=1)
        )
        await until(lambda: len(broker.acks) == 4)
        await until(lambda: member.assignment())
        info = await member._queues.running_info()
        assert [queue.queue_id for queue in member.assignment()] == [-1]
        assert await member.lag() == {}
    asked, pop = broker.assignments_asked[0], broker.pops[0]
    assert (asked.consumer_group, asked.strategy_name, asked.message_model) == ("g", "AVG", "CLUSTERING")
    assert {
        name: pop[name] for name in ("queueId", "maxMsgNums", "invisibleTime", "pollTime", "initMode")
    } == {"queueId": "-1", "maxMsgNums": "32", "invisibleTime": "60000", "pollTime": "15000", "initMode": "1"}
    assert seen.bodies == [b"0", b"1", b"2", b"9"]
    assert {message.topic for message in seen.messages} == {"T"}
    assert [(ack["topic"], ack["offset"]) for ack in broker.acks] == [
        ("T", "0"),
        ("T", "1"),
        ("T", "2"),
        (RETRY, "9"),
    ]
    assert broker.acks[0]["extraInfo"] == f"0 {broker.pop_time_ms} 60000 3 0 b 0 0"
    assert [one.wait_ack_count for one in info.mq_pop_table.values()] == [0]


async def test_failed_messages_are_delayed_by_their_tries_or_the_listeners_level() -> None:
    async def listener(message: MessageExt) -> None:
        if message.body == b"level":
            raise RetryLater(3)
        raise ValueError

    async with PopBroker() as broker, consumer(broker, listener):
        broker.bring(
            record("T", 0, b"first"),
            record(RETRY, 1, b"second", tries=1),
            record("T", 2, b"level"),
            record("T", 3, b"old", tries=16),
        )
        await until(lambda: len(broker.changes) == 3 and broker.acks)
    assert [(change["topic"], change["invisibleTime"]) for change in broker.changes] == [
        ("T", "10000"),
        (RETRY, "30000"),
        ("T", "120000"),
    ]
    assert [ack["offset"] for ack in broker.acks] == ["3"], "tried too often, and born long ago"


class Odd(FilterMessageHook):
    def filter_message(self, context: FilterMessageContext) -> None:
        context.messages = [message for message in context.messages if message.queue_offset % 2 == 0]


async def test_filtered_messages_are_acknowledged_together() -> None:
    seen = Seen()
    async with (
        PopBroker() as broker,
        consumer(
            broker,
            seen,
            subscription={"T": "a"},
            hooks=[Odd()],
            pop_batch_nums=8,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        ),
    ):
        broker.bring(*(record("T", n, b"%d" % n, tag="ab"[n == 4], tries=17 * (n == 6)) for n in range(8)))
        await until(lambda: len(broker.acks) == 2 and broker.batch_acks)
    assert seen.bodies == [b"0", b"2"]
    (body,) = broker.batch_acks
    assert body.acks is not None
    assert list(body.acks[0].offsets()) == [1, 3, 4, 5, 6, 7]
    assert (broker.pops[0]["exp"], broker.pops[0]["maxMsgNums"], broker.pops[0]["initMode"]) == (
        "a",
        "8",
        "0",
    )


async def test_a_broker_without_batches_gets_each_acknowledgement_by_itself() -> None:
    async def on_messages(messages: list[MessageExt]) -> None: ...

    async with PopBroker() as broker:
        broker.is_old = True
        async with consumer(broker, batch_listener=on_messages, consume_message_batch_max_size=8):
            broker.bring(*(record("T", n, b"%d" % n) for n in range(3)))
            await until(lambda: len(broker.acks) == 3)
            broker.bring(*(record("T", n, b"%d" % n) for n in range(3, 6)))
            await until(lambda: len(broker.acks) == 6)
    assert [ack["offset"] for ack in broker.acks] == ["0", "1", "2", "3", "4", "5"]


async def test_acknowledgements_over_a_new_connection_are_repeated_one_by_one_too() -> None:
    async def on_messages(messages: list[MessageExt]) -> None:
        connection_of(member).close()

    async with PopBroker() as broker:
        broker.is_old = True
        member = consumer(broker, batch_listener=on_messages, consume_message_batch_max_size=8)
        async with member:
            broker.bring(*(record("T", n, b"%d" % n) for n in range(3)))
            await until(lambda: len(broker.acks) == 3)
    assert [ack["offset"] for ack in broker.acks] == ["0", "1", "2"]


async def test_an_acknowledgement_whose_answer_is_lost_is_a_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with PopBroker() as broker, consumer(broker, Seen()) as member:
        broker.answers_acks = False
        broker.bring(record("T", 0, b"x"))
        await until(lambda: broker.acks)
        connection_of(member).close()
        await until(lambda: "ACK_MESSAGE of" in caplog.text)
    assert [line.name for line in caplog.records if line.name == "asyncio"] == []


async def test_pops_and_acknowledgements_do_not_use_the_vip_channel() -> None:
    """As in the official client, which asks for its assignment there."""
    asked = Asked()
    async with (
        PopBroker(fixed_port()) as broker,
        consumer(broker, Seen(), hooks=[asked], vip_channel_enabled=True, instance_name="vip") as member,
    ):
        broker.bring(record("T", 0, b"x"))
        await until(lambda: broker.acks)
        main = port_of(member._running.routes.master("b", main_port=True) or "")
    assert set(asked.ports("QUERY_ASSIGNMENT")) == {main - 2}
    assert {*asked.ports("POP_MESSAGE"), *asked.ports("ACK_MESSAGE")} == {main}


async def test_a_queue_that_was_not_popped_for_two_minutes_is_popped_anew() -> None:
    async with PopBroker() as broker, consumer(broker, Seen()) as member:
        broker.bring(record("T", 0, b"x"))
        await until(lambda: broker.acks, what="the loop pops, and waits in its second pop")
        assert member._queues.pops is not None
        table = member._queues.pops.table
        ((queue, first),) = table.items()
        first.last_pop_ms -= 119_000
        await member._queues.rebalance()
        assert table[queue] is first
        first.last_pop_ms -= 2_000
        await member._queues.rebalance()
        assert table[queue] is not first
        assert first.dropped


async def test_expired_messages_are_neither_consumed_nor_acknowledged() -> None:
    seen = Seen()
    async with PopBroker() as broker, consumer(broker, seen) as member:
        broker.pop_time_ms = 1_000
        broker.bring(record("T", 0, b"late"))
        await until(lambda: broker.pops)
        broker.pop_time_ms = 4_000_000_000_000
        broker.bring(record("T", 1, b"in time"))
        await until(lambda: broker.acks)
        info = await member._queues.running_info()
    assert seen.bodies == [b"in time"]
    assert [ack["offset"] for ack in broker.acks] == ["1"]
    assert [one.wait_ack_count for one in info.mq_pop_table.values()] == [0]


async def test_popping_stops_while_too_many_messages_are_unacknowledged() -> None:
    async def on_messages(messages: list[MessageExt]) -> None:
        await go.wait()

    go = asyncio.Event()
    async with (
        PopBroker() as broker,
        consumer(
            broker, batch_listener=on_messages, consume_message_batch_max_size=32, pop_threshold_for_queue=3
        ),
    ):
        broker.bring(*(record("T", n, b"%d" % n) for n in range(4)))
        broker.bring(record("T", 4, b"4"))
        await until(lambda: broker.pops)
        await asyncio.sleep(0.2)  # nothing must happen
        assert len(broker.pops) == 1
        go.set()
        await until(lambda: len(broker.pops) == 2 and broker.acks)
    assert broker.batch_acks[0].acks is not None
    assert list(broker.batch_acks[0].acks[0].offsets()) == [0, 1, 2, 3]


@pytest.mark.parametrize("code", [19, 210, 209, 215, 1, 1500])
async def test_popping_continues_after_any_answer(code: int) -> None:
    seen = Seen()
    async with PopBroker() as broker:
        broker.pop_code = code
        async with consumer(broker, seen, pull_time_delay_mills_when_exception=10):
            broker.bring(record("T", 0, b"x"))
            await until(lambda: broker.acks)
    assert seen.bodies == [b"x"]


@pytest.mark.slow
async def test_the_mode_may_change_while_the_consumer_runs() -> None:
    async with PopBroker() as broker, consumer(broker, Seen()) as member:
        await until(lambda: [queue.queue_id for queue in member.assignment()] == [-1])
        broker.mode = "PULL"
        member._running.rebalance_now()
        await until(lambda: member._queues.pops is not None and not member._queues.pops.table)
        await until(lambda: RETRY in member._subscriptions)
        broker.mode = "POP"
        member._running.rebalance_now()
        await until(lambda: member._queues.pops is not None and member._queues.pops.table)
        assert RETRY not in member._subscriptions
        member.unsubscribe("T")
        member._running.rebalance_now()
        await until(lambda: not member.assignment())


async def test_ordered_and_broadcasting_consumers_rebalance_by_themselves() -> None:
    for options in ({"orderly": True}, {"message_model": "BROADCASTING"}):
        async with PopBroker() as broker:
            member = consumer(broker, Seen(), **options)
            async with member:
                assert member._queues.pops is None
            assert broker.assignments_asked == []
