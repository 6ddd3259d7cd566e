"""Pulls: what the log says of them, offsets that they carry, waiting.

Checks, statuses and filters of 4.9.7 and 5.5.0 are in the recorded conversations `administration` and `groups`; what
4.9 writes down of corrected pulls is in `stored`.
"""

from typing import Any, cast

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.membership.consumer_groups import Client
from pocketmq.broker.network.dispatch import HELD
from pocketmq.protocol.bodies.client import tag_subscription
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.flags import PULL_COMMIT_OFFSET, PULL_SUBSCRIPTION, PULL_SUSPEND
from pocketmq.protocol.message.record import decode_records

from broker_fakes import (
    Asked,
    FakeConnection,
    MakeBroker,
    as_asked,
    ask,
    connect,
    pull_request,
    send,
    store_message,
    turns,
)

SUSPENDING = PULL_SUBSCRIPTION | PULL_SUSPEND


@pytest.fixture
def filled(broker: Broker) -> Broker:
    """A topic of two queues with three messages in queue 0, the second tagged B, the others A."""
    broker.topics.update(TopicConfig(topic_name="orders", read_queue_nums=2, write_queue_nums=2))
    for number, tag in enumerate("ABA"):
        store_message(broker, "orders", 0, f"m{number}".encode(), {"TAGS": tag})
    return broker


async def hold(broker: Broker, offset: int = 3, **changes: Any) -> FakeConnection:
    """A pull that waits: the connection that it came by."""
    connection = FakeConnection()
    request = pull_request(offset, **{"sys_flag": SUSPENDING, **changes})
    assert await send(broker, request, connection=connection) is HELD
    return connection


@pytest.fixture
async def waiting(filled: Broker) -> FakeConnection:
    """A pull for tag B at the end of queue 0."""
    return await hold(filled, subscription="B")


async def scan(broker: Broker) -> None:
    now_ms = broker.clock.now_ms()
    list(broker.pulling.waiters.scan(now_ms, now_ms, broker.store.max_offset))
    await turns()


def only_answer(connection: FakeConnection) -> Asked:
    (answer,) = connection.late_answers
    return as_asked(cast(Any, answer))


def bodies(answer: Asked) -> list[bytes]:
    return [bytes(record.body) for record in decode_records(answer.body)]


async def test_a_newer_subscription_than_the_heartbeats_is_missed_and_the_log_says_so_once(
    filled: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    filled.membership.consumers.register(
        "g",
        Client(connect(filled), "c1", "JAVA", 0, filled.clock.now_ms()),
        consume_type="CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        subscriptions=[tag_subscription("orders", "B", sub_version=10)],
    )
    for _ in range(2):
        answer = await ask(filled, pull_request(sys_flag=0, sub_version=11))
        assert (answer.code, answer.remark) == (25, "the consumer's subscription not latest")
    assert caplog.text.count("group g pulls topic orders with a newer subscription than its heartbeats") == 1


async def test_the_offset_of_a_pull_that_waits_is_stored_once(filled: Broker) -> None:
    await hold(filled, sys_flag=SUSPENDING | PULL_COMMIT_OFFSET, commit_offset=3)
    assert filled.offsets.query("orders", "g", 0) == 3
    filled.offsets.commit("orders", "g", 0, 5)
    store_message(filled, "orders")
    await turns()
    assert filled.offsets.query("orders", "g", 0) == 5


async def test_arrivals_of_one_turn_that_match_are_delivered_in_one_answer(
    filled: Broker, waiting: FakeConnection
) -> None:
    for number in range(3):
        store_message(filled, "orders", 0, f"n{number}".encode(), {"TAGS": "B"})
    await turns()
    assert bodies(only_answer(waiting)) == [b"n0", b"n1", b"n2"]
    assert len(filled.pulling.waiters) == 0


async def test_another_tag_and_another_queue_wake_no_pull(filled: Broker, waiting: FakeConnection) -> None:
    store_message(filled, "orders", 0, b"new", {"TAGS": "A"})
    store_message(filled, "orders", 1, b"new", {"TAGS": "B"})
    await turns()
    assert waiting.late_answers == []


async def test_the_deadline_brings_an_empty_answer(filled: Broker, waiting: FakeConnection) -> None:
    filled.clock.advance(14_999)
    await scan(filled)
    assert waiting.late_answers == []
    filled.clock.advance(1)
    await scan(filled)
    answer = only_answer(waiting)
    assert (answer.code, answer.fields["nextBeginOffset"]) == (19, "3")


async def test_the_scan_tells_how_far_nothing_matched(filled: Broker, waiting: FakeConnection) -> None:
    store_message(filled, "orders", 0, b"new", {"TAGS": "A"})
    await scan(filled)
    answer = only_answer(waiting)
    assert (answer.code, answer.fields["nextBeginOffset"]) == (20, "4")


async def test_a_closed_connection_is_forgotten(filled: Broker, waiting: FakeConnection) -> None:
    waiting.close()
    await scan(filled)
    assert len(filled.pulling.waiters) == 0


async def test_only_the_end_of_the_queue_is_worth_waiting_for(filled: Broker) -> None:
    for offset in (0, 9):
        assert await send(filled, pull_request(offset, sys_flag=SUSPENDING)) is not HELD
    assert (await ask(filled, pull_request(3))).code == 19, "without the flag nothing waits"


async def test_short_polling_waits_its_own_time(broker_maker: MakeBroker) -> None:
    broker = broker_maker(long_polling_enable=False)
    broker.topics.update(TopicConfig(topic_name="orders"))
    connection = await hold(broker, 0)
    broker.clock.advance(1000)
    await scan(broker)
    assert len(connection.late_answers) == 1
