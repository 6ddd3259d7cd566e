"""ReceiveMessage: what is delivered, what is refused, and that a cancelled receive takes nothing."""

import asyncio
from typing import Any

import pytest
from pocketmq.grpc_endpoint.calls.rpc_call import RpcCall
from pocketmq.grpc_endpoint.messages import (
    Code,
    Duration,
    FilterExpression,
    FilterType,
    MessageQueue,
    ReceiveMessageRequest,
    Resource,
    ms_of,
)
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.store import VirtualClock

from broker_fakes import turns
from grpc_consumers import Consumers
from waiting import until

IN_ORDER = SubscriptionGroupConfig(group_name="g", consume_message_orderly=True)
PX = "org.apache.rocketmq.proxy.common.ProxyException: "


async def test_messages_come_with_handle_and_attempt_between_status_and_time(
    consumers: Consumers, clock: VirtualClock
) -> None:
    asked = consumers.receive()
    assert asked.status == (Code.OK, "OK")
    assert asked.bodies == ["m0", "m1", "m2", "m3"]
    assert asked.attempts == [1, 1, 1, 1]
    position = [int(handle.split(" ")[8]) for handle in asked.handles]
    assert position[0] < position[1]
    now_ms = clock.now_ms()
    assert asked.handles[1] == f"0 {now_ms} 60000 0 0 broker-a 0 1 {position[1]}"
    assert ms_of(asked.replies[-1].delivery_timestamp) == now_ms
    assert asked.is_ended
    system = asked.messages[0].system_properties
    assert (system.message_id, system.tag, system.queue_offset) == ("id-m0", "A", 0)


async def test_a_batch_is_at_most_what_was_asked_for(consumers: Consumers) -> None:
    assert consumers.receive(batch_size=3).bodies == ["m0", "m1", "m2"]
    for number in range(40):
        consumers.store(f"n{number}")
    assert len(consumers.receive(batch_size=1000).bodies) == 32


async def test_a_simple_consumer_says_how_long_messages_stay_hidden(consumers: Consumers) -> None:
    asked = consumers.receive(invisible=30)
    assert asked.handles[0].split(" ")[2] == "30000"
    assert len(consumers.consuming.renewal) == 0


async def test_a_receive_cancelled_after_the_message_came_leaves_it_to_another(consumers: Consumers) -> None:
    consumers.receive()
    first, second = consumers.receive(), consumers.receive()
    consumers.store("new")  # wakes the first, which pops in the next loop iteration
    first.call.on_cancel()
    await turns()
    assert first.replies == []
    assert second.bodies == ["new"]
    assert consumers.receive(batch_size=1).replies == []


async def test_a_broker_that_stops_answers_what_waits(consumers: Consumers) -> None:
    consumers.receive()
    waiting = consumers.receive()
    consumers.broker.popping.stop()
    await turns()
    assert waiting.status == (Code.MESSAGE_NOT_FOUND, "no new message")


async def test_too_many_receives_are_told_so(consumers: Consumers) -> None:
    consumers.receive()
    consumers.broker.config.max_pop_polling_size = 1
    consumers.receive()
    assert consumers.receive().status == (Code.TOO_MANY_REQUESTS, "polling full")


# -- the client


async def test_a_receive_without_settings_waits_for_them(consumers: Consumers) -> None:
    early = consumers.receive("c2")
    await turns()
    assert early.replies == []
    consumers.announce("c2")
    assert early.bodies == ["m0", "m1", "m2", "m3"]


async def test_a_receive_is_refused_if_no_settings_arrive_within_a_second(consumers: Consumers) -> None:
    started = asyncio.get_running_loop().time()
    early = consumers.receive("c2")
    await until(lambda: early.is_ended)
    assert asyncio.get_running_loop().time() - started >= 0.998
    assert early.status == (Code.UNRECOGNIZED_CLIENT_TYPE, "cannot find client settings for this client")
    assert early.replies[-1].HasField("delivery_timestamp")


async def test_a_receive_cancelled_before_the_settings_takes_nothing(consumers: Consumers) -> None:
    early = consumers.receive("c2")
    early.call.on_cancel()
    consumers.announce("c2")
    assert early.replies == []
    assert consumers.receive().bodies == ["m0", "m1", "m2", "m3"]


async def test_a_strict_endpoint_does_not_wait_for_settings(make_consumers: Any) -> None:
    strict: Consumers = make_consumers(grpc_strict=True)
    early = strict.receive("c2")
    await turns()
    assert early.status[0] == Code.UNRECOGNIZED_CLIENT_TYPE


async def test_a_member_that_has_left_gets_no_message_under_renewal(consumers: Consumers) -> None:
    consumers.receive()
    waiting = consumers.receive()
    consumers.broker.membership.consumers.unregister("g", consumers.peer("c1"), is_notified=False)
    consumers.store("new")
    await turns()
    assert waiting.status == (Code.MESSAGE_NOT_FOUND, "The client [c1] is disconnected.")
    consumers.announce("c1")
    consumers.pass_time(6)
    again = consumers.receive()
    assert (again.bodies, again.attempts) == (["new"], [1])


# -- refusals


@pytest.mark.parametrize(
    ("fields", "of_call", "code", "text"),
    [
        (
            {"filter_expression": FilterExpression(expression="a" * 32_769)},
            {},
            Code.ILLEGAL_FILTER_EXPRESSION,
            "an expression of more than 32768 characters",
        ),
        ({"topic": "nothing"}, {}, Code.TOPIC_NOT_FOUND, None),
        ({}, {"seconds": 4, "version": None}, Code.BAD_REQUEST, None),
    ],
)
async def test_refusals_end_with_the_time(
    consumers: Consumers, fields: dict[str, Any], of_call: dict[str, Any], code: Code, text: str | None
) -> None:
    asked = consumers.receive(**fields, **of_call)
    assert asked.status[0] == code
    assert text in (None, asked.status[1])
    assert len(asked.replies) == 2
    assert asked.replies[1].HasField("delivery_timestamp")
    assert asked.is_ended


@pytest.mark.parametrize(
    ("asked_for", "deadline", "expected_ms"),
    [
        (Duration(seconds=8), None, 8000),
        (Duration(seconds=1), None, 5000),
        (Duration(seconds=60), None, 20_000),
        (None, None, 20_000),
        (None, 7, 5500),
        (Duration(seconds=8), 6, 6000),
        (None, 300, 20_000),
    ],
)
async def test_the_polling_time_is_bounded_by_settings_and_deadline(
    consumers: Consumers,
    asked_for: Duration | None,
    deadline: float | None,
    expected_ms: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(RpcCall, "remaining_seconds", deadline)
    consumers.receive()
    consumers.receive(long_polling_timeout=asked_for, seconds=deadline)
    waiters = consumers.broker.popping.waiters
    [(until_ms, _, _)] = waiters._times
    assert until_ms == consumers.broker.clock.now_ms() + expected_ms


# -- filters


async def test_tags_and_sql_choose_messages(consumers: Consumers) -> None:
    consumers.announce("other", "h")
    by_sql = FilterExpression(type=FilterType.SQL, expression="TAGS = 'B'")
    by_tag = FilterExpression(type=FilterType.TAG, expression="B || C")
    assert consumers.receive("other", group="h", filter_expression=by_sql).bodies == ["m1", "m3"]
    assert consumers.receive(filter_expression=by_tag).bodies == ["m1", "m3"]


async def test_a_tag_with_the_same_hash_is_consumed_and_not_delivered(consumers: Consumers) -> None:
    consumers.fill(topic="hashes", count=0)
    consumers.store("BB", "hashes", tag="BB")  # the Java hashes of Aa and BB are equal
    asked = consumers.receive(topic="hashes", filter_expression=FilterExpression(expression="Aa"))
    assert asked.status == (Code.MESSAGE_NOT_FOUND, "no match message")
    consumers.store("Aa", "hashes", tag="Aa")
    consumers.store("BB2", "hashes", tag="BB")
    asked = consumers.receive(topic="hashes", filter_expression=FilterExpression(expression="Aa"))
    assert asked.bodies == ["Aa"]
    consumers.pass_time(70)
    assert consumers.broker.store.max_offset("%RETRY%g_hashes", 0) == 0


# -- in order


async def test_a_fifo_group_gets_a_queue_again_by_the_same_attempt_only(consumers: Consumers) -> None:
    consumers.broker.groups.update(IN_ORDER)
    assert consumers.announce("c1").subscription.fifo
    first = consumers.receive(batch_size=2, attempt_id="a")
    assert first.bodies == ["m0", "m1"]
    assert first.handles[0].split(" ")[3] == "999"
    other = consumers.receive(attempt_id="b")
    assert other.replies == []
    again = consumers.receive(batch_size=2, attempt_id="a")
    assert again.bodies == ["m0", "m1"]
    assert again.attempts == [1, 1]
    names = [("id-m0", again.handles[0]), ("id-m1", again.handles[1])]
    assert consumers.ack(*names).status == (Code.OK, "OK")
    await turns()
    assert other.bodies == ["m2", "m3"]


async def test_the_queue_of_the_request_does_not_matter(consumers: Consumers) -> None:
    queue = MessageQueue(topic=Resource(name="orders"), id=7)
    request = ReceiveMessageRequest(
        group=Resource(name="g"), message_queue=queue, batch_size=32, auto_renew=True
    )
    assert consumers.ask(request).bodies == ["m0", "m1", "m2", "m3"]


async def test_a_slave_delivers_nothing(consumers: Consumers) -> None:
    """In order it needs no store for that; but the master would deliver the same messages at the same time."""
    consumers.broker.groups.update(IN_ORDER)
    consumers.broker.config.store.broker_role = "SLAVE"
    consumers.announce("c1")
    text = f"{PX}a slave delivers no messages: receive from its master"
    assert consumers.receive().status == (Code.FORBIDDEN, text)
