"""Pops on a virtual clock: which messages are redelivered and when, waiting, order, limits, damaged records.

What official brokers answer is tested in tests/conformance/waiting/test_pop.py; here time is ours.
"""

import asyncio
import json
from typing import Any

import msgspec
import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.network.dispatch import HELD
from pocketmq.broker.pop import pop_reading
from pocketmq.broker.pop.ordered_pops import OrderedPops
from pocketmq.protocol.bodies.pop import BatchAck, bit_set_of
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.record import decode_records
from pocketmq.protocol.requests.pop import BatchAckMessage, PollingInfo
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import VirtualClock

from broker.pop.pops import a_change, a_pop, an_ack, bodies, body_of, pass_time, popped
from broker_fakes import Asked, FakeConnection, as_asked, ask, connect, send, store_message, turns


async def test_a_message_without_ack_is_redelivered_once(filled: Broker) -> None:
    answer, found = await popped(filled)
    assert found == ["m0", "m1", "m2", "m3"]
    assert (await ask(filled, an_ack(answer, 0))).code == 0
    pass_time(filled, 10)
    assert (await popped(filled))[1] == []
    pass_time(filled, 6)
    again, found = await popped(filled)
    assert found == ["m1", "m2", "m3"]
    assert again.fields["msgOffsetInfo"] == "1 0 0,1,2"
    assert {record.topic for record in decode_records(again.body)} == {"orders"}
    assert {record.reconsume_times for record in decode_records(again.body)} == {1}
    pass_time(filled, 30)
    third, found = await popped(filled)
    assert found == ["m1", "m2", "m3"]
    assert {record.reconsume_times for record in decode_records(third.body)} == {2}


async def test_a_pop_with_enough_bytes_reads_no_further_queue(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each queue gives one message of any size: 32 of 4 MiB are more than a client reads in one frame."""
    monkeypatch.setattr(pop_reading, "ENOUGH_BYTES", 10_000)
    broker.topics.update(TopicConfig(topic_name="orders", read_queue_nums=8, write_queue_nums=8))
    for queue_id in range(8):
        store_message(broker, "orders", queue_id, b"x" * 4_000)
    answer, found = await popped(broker)
    assert len(found) == 3
    assert answer.fields["restNum"] == "5"
    assert [len((await popped(broker))[1]) for _ in range(2)] == [3, 2]


async def test_a_batch_acknowledges_what_its_bits_say(filled: Broker) -> None:
    answer, _ = await popped(filled)
    batch = BatchAck(
        consumer_group="g",
        topic="orders",
        retry="0",
        start_offset=0,
        revive_queue_id=int(answer.fields["reviveQid"]),
        pop_time=int(answer.fields["popTime"]),
        invisible_time=10_000,
        bit_set=bit_set_of([0, 1, 3, 70]),
    )
    assert (await ask(filled, BatchAckMessage(), body=body_of(batch))).code == 0
    pass_time(filled, 20)
    assert (await popped(filled))[1] == ["m2"]


@pytest.mark.parametrize("order", [False, True], ids=["unordered", "ordered"])
async def test_a_batch_with_more_acks_than_a_pop_delivers_has_no_effect(filled: Broker, order: bool) -> None:
    for number in range(40):
        store_message(filled, "orders", 0, b"more%d" % number, {})
    answer, _ = await popped(filled, max_msg_nums=2, order=order)
    times = {"pop_time": int(answer.fields["popTime"]), "invisible_time": 10_000}
    queue = {"consumer_group": "g", "topic": "orders", "retry": "0"}
    queue |= {"revive_queue_id": int(answer.fields["reviveQid"])}
    good = BatchAck(**queue, **times, bit_set=bit_set_of([0, 1]))
    bad = BatchAck(**queue, **times, bit_set=bit_set_of(range(33)))
    refused = await ask(filled, BatchAckMessage(), body=body_of(good, bad))
    assert refused.code == ResponseCode.MESSAGE_ILLEGAL
    assert "at most 32" in (refused.remark or "")
    refused = await ask(filled, BatchAckMessage(), body=body_of(*[good] * 1025))
    assert (refused.code, refused.remark) == (
        ResponseCode.MESSAGE_ILLEGAL,
        "the request acknowledges 1025 pops, at most 1024 are allowed",
    )
    pass_time(filled, 20)
    found = [body for _ in range(2) for body in (await popped(filled, order=order))[1]]
    assert {"m0", "m1"} < set(found)


async def test_more_time_is_given_to_one_message(filled: Broker, clock: VirtualClock) -> None:
    answer, _ = await popped(filled, max_msg_nums=1)
    change = a_change(answer)
    clock.advance(1000)
    changed = await ask(filled, change)
    assert changed.fields["popTime"] == str(clock.now_ms())
    await popped(filled, consumer_group="g", max_msg_nums=3, invisible_time=200_000)
    pass_time(filled, 50)
    assert (await popped(filled))[1] == []
    pass_time(filled, 20)
    assert (await popped(filled))[1] == ["m0"]


# -- waiting


async def wait_for(broker: Broker, **changes: Any) -> FakeConnection:
    connection = connect(broker)
    request = a_pop(**{"poll_time": 20_000, "born_time": broker.clock.now_ms(), **changes})
    assert await send(broker, request, connection=connection) is HELD
    return connection


def answered(connection: FakeConnection) -> list[Asked]:
    return [as_asked(answer) for answer in connection.late_answers if answer is not None]


async def test_a_message_wakes_one_waiter_of_each_group(filled: Broker) -> None:
    for group in ("g", "h"):
        await popped(filled, consumer_group=group)
    first, second = await wait_for(filled), await wait_for(filled, born_time=filled.clock.now_ms() + 10)
    other = await wait_for(filled, consumer_group="h")
    info = PollingInfo(consumer_group="g", topic="orders", queue_id=-1)
    assert (await ask(filled, info)).fields["pollingNum"] == "2"
    store_message(filled, "orders", 0, b"new")
    await turns()
    assert [bodies(one) for one in answered(first)] == [["new"]]
    assert [bodies(one) for one in answered(other)] == [["new"]]
    assert answered(second) == []
    assert (await ask(filled, info)).fields["pollingNum"] == "1"


async def test_a_waiter_is_answered_shortly_before_its_time_is_over(filled: Broker) -> None:
    await popped(filled)
    connection = await wait_for(filled)
    filled.clock.advance(19_950)
    filled.popping.waiters.scan(filled.clock.now_ms())
    await turns()
    assert answered(connection) == [], "fifty ms before it"
    filled.popping.waiters.scan(filled.clock.now_ms() + 1)
    await turns()
    [answer] = answered(connection)
    assert (answer.code, answer.remark) == (210, "NO_MESSAGE_IN_QUEUE")


async def test_waiting_has_limits(filled: Broker) -> None:
    await popped(filled)
    filled.config.pop_polling_size = 1
    await wait_for(filled)
    await wait_for(filled)
    request = a_pop(poll_time=20_000, born_time=filled.clock.now_ms())
    assert (await ask(filled, request)).code == 209
    filled.config.max_pop_polling_size = 2
    assert (await ask(filled, msgspec.structs.replace(request, queue_id=0))).code == 209


async def test_no_request_waits_at_a_broker_that_stops(filled: Broker) -> None:
    await popped(filled)
    connection = await wait_for(filled)
    filled.popping.waiters.stop()
    await turns()
    assert [one.code for one in answered(connection)] == [210]
    assert filled.popping.waiters.total == 0


async def test_a_closed_connection_is_forgotten(filled: Broker) -> None:
    await popped(filled)
    connection, other = await wait_for(filled), await wait_for(filled)
    connection.close()
    store_message(filled, "orders", 0, b"new")
    await turns()
    assert answered(connection) == []
    assert [bodies(one) for one in answered(other)] == [["new"]]


async def test_a_pop_of_no_messages_waits_without_being_woken_again_and_again(filled: Broker) -> None:
    connection = await wait_for(filled, max_msg_nums=0)
    fired = 0
    for _ in range(10):
        fired += filled.popping.waiters.total == 0
        await asyncio.sleep(0)
    assert fired == 0
    assert answered(connection) == []


# -- in order


async def test_a_queue_is_free_when_its_time_is_over(filled: Broker, clock: VirtualClock) -> None:
    _, found = await popped(filled, order=True, attempt_id="a", max_msg_nums=2)
    assert found == ["m0", "m1"]
    assert (await popped(filled, order=True, attempt_id="b"))[1] == []
    clock.advance(10_000)
    answer, found = await popped(filled, order=True, attempt_id="b", max_msg_nums=3)
    assert found == ["m0", "m1", "m2"]
    assert answer.fields["orderCountInfo"] == "0 qo0%0 1;0 qo0%1 1;0 0 0"


async def test_an_ack_of_what_is_not_out_is_refused(filled: Broker) -> None:
    answer, _ = await popped(filled, order=True, max_msg_nums=2)
    refused = await ask(filled, an_ack(answer, 3))
    assert (refused.code, (refused.remark or "").startswith("offset is illegal, key:orders@g@0")) == (
        13,
        True,
    )
    stale = an_ack(answer, 1)
    stale = msgspec.structs.replace(stale, extra_info=f"0 7 10000 999 0 broker-a 0 {stale.offset}")
    assert (await ask(filled, stale)).code == 0  # of an older pop: nothing happens
    assert filled.offsets.query("orders", "g", 0) == 0


async def test_without_an_entry_an_ack_moves_the_group_over_no_other_message(filled: Broker) -> None:
    answer, found = await popped(filled, order=True)
    assert found == ["m0", "m1", "m2", "m3"]
    filled.popping.ordered_pops._table.clear()  # not saved before a kill
    for offset, moved_to in ((3, 0), (1, 0), (0, 1), (1, 2)):
        assert (await ask(filled, an_ack(answer, offset))).code == 0
        assert filled.offsets.query("orders", "g", 0) == moved_to


async def test_the_time_of_a_message_that_is_not_in_flight_is_not_kept(filled: Broker) -> None:
    answer, _ = await popped(filled, order=True, max_msg_nums=2)
    change = a_change(answer, 3)
    assert (await ask(filled, change)).code == 0
    info = filled.popping.ordered_pops._find("orders", "g", 0)
    assert info is not None
    assert not info.next_visible


async def test_order_is_kept_in_a_file(filled: Broker, clock: VirtualClock) -> None:
    answer, _ = await popped(filled, order=True, attempt_id="a", max_msg_nums=3)
    assert (await ask(filled, an_ack(answer, 0))).code == 0
    filled.popping.ordered_pops.persist()
    text = json.loads(filled.popping.ordered_pops.file.path.read_bytes())
    assert text["table"] == {
        "orders@g": {
            "0": {
                "a": "a",
                "cm": 1,
                "i": 10_000,
                "l": clock.now_ms(),
                "o": [0, 1, 2],
                "popTime": clock.now_ms(),
            }
        }
    }
    other = OrderedPops(filled.state, lambda *_: None)
    assert other.load()
    assert other.is_blocked("b", "orders", "g", 0, 1000)


# -- counted, and from where


async def test_pops_and_acks_are_counted(filled: Broker) -> None:
    filled.groups.find_or_create("g")
    answer, _ = await popped(filled)
    for group in ("g", "a_group_nobody_made"):
        request = msgspec.structs.replace(an_ack(answer, 0), consumer_group=group)
        assert (await ask(filled, request)).code == 0
    for name, key in (
        ("GROUP_CK_NUMS", "orders@g"),
        ("GROUP_ACK_NUMS", "orders@g"),
        ("BROKER_CK_NUMS", "DefaultCluster"),
        ("BROKER_ACK_NUMS", "DefaultCluster"),
    ):
        assert filled.statistics.find(name, key) is not None
    assert filled.statistics.find("GROUP_ACK_NUMS", "orders@a_group_nobody_made") is None


async def test_the_highest_queue_is_read_first_if_messages_have_priorities(broker: Broker) -> None:
    config = TopicConfig(topic_name="orders", read_queue_nums=3, write_queue_nums=3)
    broker.topics.update(msgspec.structs.replace(config, attributes={"+message.type": "PRIORITY"}))
    for queue_id in range(3):
        store_message(broker, "orders", queue_id, f"q{queue_id}".encode())
    for expected in ("q2", "q1", "q0"):
        assert (await popped(broker, max_msg_nums=1))[1] == [expected]


@pytest.mark.parametrize("separate", [False, True])
async def test_a_redelivered_message_keeps_its_queue_if_retry_queues_are_separate(
    broker: Broker, separate: bool
) -> None:
    broker.delayed.timer.start()
    broker.config.use_separate_retry_queue = separate
    broker.config.pop_from_retry_probability = 0  # and full with one: what came again stays where it is
    for queues in (2, 3):  # the topic grows, and its retry topic behind it
        broker.topics.update(
            TopicConfig(topic_name="orders", read_queue_nums=queues, write_queue_nums=queues)
        )
        last = queues - 1
        store_message(broker, "orders", last, f"m{last}".encode())
        await popped(broker, queue_id=last, max_msg_nums=1)
        pass_time(broker, 16)
    retry = broker.topics.find("%RETRY%g_orders")
    assert retry is not None
    assert retry.read_queue_nums == retry.write_queue_nums == (3 if separate else 1)
    stored = [broker.store.max_offset("%RETRY%g_orders", queue_id) for queue_id in range(3)]
    assert stored == ([0, 1, 1] if separate else [2, 0, 0])
    place = [broker.offsets.query("%RETRY%g_orders", "g", queue_id) for queue_id in range(3)]
    assert place == ([0, 0, 0] if separate else [0, -1, -1])


@pytest.mark.parametrize("v2", [False, True])
async def test_retry_topics_of_both_forms_are_popped(broker: Broker, v2: bool) -> None:
    broker.delayed.timer.start()
    broker.config.enable_retry_topic_v2 = v2
    broker.topics.update(TopicConfig(topic_name="orders", read_queue_nums=1, write_queue_nums=1))
    store_message(broker, "orders", 0, b"m0")
    await popped(broker)
    pass_time(broker, 16)
    name = "%RETRY%g+orders" if v2 else "%RETRY%g_orders"
    assert broker.store.max_offset(name, 0) == 1
    found: list[str] = []
    for _ in range(60):  # with both forms allowed, dice choose which one a pop looks at
        answer, bodies_found = await popped(broker)
        found += bodies_found
        if found:
            assert answer.fields["msgOffsetInfo"] == ("2 0 0" if v2 else "1 0 0")
            break
    assert found == ["m0"]
