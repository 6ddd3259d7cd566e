"""What wakes a waiting pop or notification, on a virtual clock. The waiters by themselves: `test_pop_waiters.py`."""

from typing import Any

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.errors import Refusal
from pocketmq.broker.network.dispatch import HELD
from pocketmq.broker.pop import ordered_pops
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.batch import BatchElement, encode_batch
from pocketmq.protocol.requests.pop import Notification, PopMessage
from pocketmq.protocol.requests.send import SendBatchMessage
from pocketmq.protocol.wire.response_codes import ResponseCode

from broker.pop.pops import a_pop, an_ack, popped
from broker_fakes import (
    FakeConnection,
    FakeLoop,
    as_asked,
    ask,
    connect,
    send,
    send_request,
    store_message,
    turns,
)


def waiting_request(broker: Broker, is_pop: bool, **changes: Any) -> PopMessage | Notification:
    fields = {"queue_id": -1, "poll_time": 9000, "born_time": broker.clock.now_ms(), **changes}
    return a_pop(**fields) if is_pop else Notification(consumer_group="g", topic="orders", **fields)


async def held(broker: Broker, *, is_pop: bool, **changes: Any) -> FakeConnection:
    connection = connect(broker)
    request = waiting_request(broker, is_pop, **changes)
    assert await send(broker, request, connection=connection) is HELD
    return connection


async def answers(connection: FakeConnection) -> list[int]:
    """The codes of the answers that were sent late."""
    await turns()
    return [as_asked(answer).code for answer in connection.late_answers if answer is not None]


@pytest.mark.parametrize("is_pop", [True, False], ids=["pop", "notification"])
async def test_a_batch_wakes_what_waits(filled: Broker, is_pop: bool) -> None:
    await popped(filled)
    connection = await held(filled, is_pop=is_pop)
    batch = send_request(kind=SendBatchMessage, batch=True)
    elements = encode_batch([BatchElement(0, b"n%d" % number, b"") for number in range(3)])
    assert (await ask(filled, batch, elements)).code == 0
    assert await answers(connection) == [0]


@pytest.mark.parametrize("is_pop", [True, False], ids=["pop", "notification"])
@pytest.mark.parametrize("queue_id", [-1, 0])
async def test_an_ack_wakes_what_waits_for_the_queue_it_frees(
    filled: Broker, queue_id: int, is_pop: bool
) -> None:
    answer, _ = await popped(filled, order=True, max_msg_nums=1)
    connection = await held(filled, is_pop=is_pop, queue_id=queue_id, order=True)
    assert (await ask(filled, an_ack(answer, 0))).code == 0
    assert await answers(connection) == [0]


async def test_only_so_many_blocked_queues_have_an_alarm(
    broker: Broker, loop: FakeLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordered_pops, "MAX_ALARMS", 2)
    broker.topics.update(TopicConfig(topic_name="orders", read_queue_nums=3, write_queue_nums=3))
    waiting = []
    for queue_id in range(3):
        store_message(broker, "orders", queue_id)
        assert len((await popped(broker, order=True, queue_id=queue_id))[1]) == 1
        waiting.append(await held(broker, is_pop=True, queue_id=queue_id, order=True, poll_time=60_000))
    loop.run_for(10_002)
    assert [await answers(connection) for connection in waiting] == [[0], [0], []]


@pytest.mark.parametrize("wakes", [True, False])
async def test_queue_whose_time_is_over_wakes_what_waits_for_it_if_the_setting_says_so(
    filled: Broker, loop: FakeLoop, wakes: bool
) -> None:
    filled.config.enable_notify_after_pop_order_lock_release = wakes
    await popped(filled, order=True, max_msg_nums=1)
    connection = await held(filled, is_pop=True, order=True, poll_time=60_000)
    loop.run_for(9_999)
    assert await answers(connection) == []
    loop.run_for(2)
    assert await answers(connection) == ([0] if wakes else [])


@pytest.mark.parametrize(
    ("others", "is_told"), [(0, True), (31, True), (32, False), (62, False), (63, True), (80, True)]
)
async def test_notification_with_a_tag_looks_at_the_next_messages_if_few_are_left(
    broker: Broker, others: int, is_told: bool
) -> None:
    """At 32 of fewer than 64; if more are left, some message is there for it."""
    broker.topics.update(TopicConfig(topic_name="orders", read_queue_nums=1, write_queue_nums=1))
    for tag in ["B"] * others + ["A"]:
        store_message(broker, "orders", 0, properties={"TAGS": tag})
    for queue_id in (-1, 0):
        request = waiting_request(
            broker, is_pop=False, exp="A", exp_type="TAG", poll_time=0, queue_id=queue_id
        )
        assert (await ask(broker, request)).fields["hasMsg"] == ("true" if is_told else "false")
        request = waiting_request(broker, is_pop=False, exp="A", poll_time=0, queue_id=queue_id)
        assert (await ask(broker, request)).fields["hasMsg"] == "true", "without a type there is no filter"


async def test_notification_of_one_queue_looks_at_no_other(broker: Broker) -> None:
    broker.topics.update(TopicConfig(topic_name="orders", read_queue_nums=3, write_queue_nums=3))
    store_message(broker, "orders", 1)
    told = [
        (await ask(broker, waiting_request(broker, is_pop=False, poll_time=0, queue_id=queue_id))).fields[
            "hasMsg"
        ]
        for queue_id in (-1, 0, 1, 2)
    ]
    assert told == ["true", "false", "true", "false"]


async def test_notifications_are_not_filtered_where_the_setting_says_so(broker: Broker) -> None:
    store_message(broker, "orders", 0, properties={"TAGS": "B"})
    broker.topics.update(TopicConfig(topic_name="orders"))
    request = waiting_request(broker, is_pop=False, exp="A", exp_type="TAG", poll_time=0)
    assert (await ask(broker, request)).fields["hasMsg"] == "false"
    broker.config.use_message_filter_for_notification = False
    assert (await ask(broker, request)).fields["hasMsg"] == "true"


@pytest.mark.parametrize(("interval", "offsets"), [(0, [4, 4, 4, 4]), (1, [5, 6, 7, 8]), (3, [4, 4, 7, 7])])
async def test_pop_waiting_for_another_tag_is_woken_now_and_then_to_move_the_offset(
    filled: Broker, interval: int, offsets: list[int]
) -> None:
    """By each message whose offset is a multiple of popLongPollingForceNotifyInterval."""
    await popped(filled)
    filled.config.pop_long_polling_force_notify_interval = interval
    connection = await held(filled, is_pop=True, exp="A", poll_time=60_000)
    seen = []
    for _ in offsets:
        store_message(filled, "orders", 0, properties={"TAGS": "B"})
        assert await answers(connection) == []
        seen.append(filled.offsets.query("orders", "g", 0))
    assert seen == offsets


async def test_waiting_pop_is_woken_by_what_its_sql_expression_wants(filled: Broker) -> None:
    await popped(filled)
    connection = await held(filled, is_pop=True, exp="size > 5", exp_type="SQL92", poll_time=60_000)
    store_message(filled, "orders", 0, properties={"size": "1"})
    assert await answers(connection) == []
    assert filled.offsets.query("orders", "g", 0) == 4, "it was not tried"
    store_message(filled, "orders", 0, properties={"size": "9"})
    assert await answers(connection) == [0]


async def test_pop_that_leaves_messages_wakes_the_next_one(filled: Broker) -> None:
    await popped(filled)
    waiting = [await held(filled, is_pop=True, max_msg_nums=1, poll_time=60_000) for _ in range(4)]
    filled.offsets.commit("orders", "g", 0, 2)  # as an administrator does
    store_message(filled, "orders", 0, b"m4")
    assert [await answers(connection) for connection in waiting] == [[0], [0], [0], []]
    assert filled.popping.waiters.total == 1


async def test_copy_in_the_retry_topic_wakes_the_group_that_it_names(filled: Broker) -> None:
    await popped(filled)
    connection = await held(filled, is_pop=True, poll_time=60_000)
    filled.topics.update(TopicConfig(topic_name="%RETRY%g_orders", read_queue_nums=1, write_queue_nums=1))
    for properties, codes in (({}, []), ({"ORIGIN_GROUP": "h"}, []), ({"ORIGIN_GROUP": "g"}, [0])):
        store_message(filled, "%RETRY%g_orders", 0, properties=dict(properties))
        assert await answers(connection) == codes


async def test_a_pop_whose_checkpoint_is_refused_is_not_tried_again_at_once(
    filled: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk it was, without an end."""
    tried = []

    def refuse(*_: object) -> None:
        tried.append(1)
        raise Refusal(ResponseCode.SYSTEM_ERROR, "the disk is full")

    monkeypatch.setattr(filled.popping.revive_log, "put_checkpoint", refuse)
    connection = await held(filled, is_pop=True)
    at_first = len(tried)
    assert at_first
    assert await answers(connection) == []
    assert len(tried) == at_first
    monkeypatch.undo()
    store_message(filled, "orders", 0)
    assert await answers(connection) == [0]
