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
from pocketmq.store import VirtualClock

from broker_fakes import (
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


@pytest.fixture
def filled(broker: Broker) -> Broker:
    """A topic of two queues with three messages in queue 0, the second tagged B, the others A."""
    broker.topics.update(TopicConfig(topic_name="orders", read_queue_nums=2, write_queue_nums=2))
    for number, tag in enumerate("ABA"):
        store_message(broker, "orders", 0, f"m{number}".encode(), {"TAGS": tag})
    return broker


def bodies(body: bytes) -> list[bytes]:
    return [bytes(record.body) for record in decode_records(body)]


class TestSubscriptionOfTheHeartbeat:
    """A pull without its own expression uses what the group's clients registered."""

    @pytest.fixture
    async def registered(self, filled: Broker) -> Broker:
        filled.membership.consumers.register(
            "g",
            Client(connect(filled), "c1", "JAVA", 0, filled.clock.now_ms()),
            consume_type="CONSUME_PASSIVELY",
            message_model="CLUSTERING",
            consume_from_where="CONSUME_FROM_LAST_OFFSET",
            subscriptions=[tag_subscription("orders", "B", sub_version=10)],
        )
        return filled

    async def test_a_newer_one_is_missed_and_the_log_says_so_once(
        self, registered: Broker, caplog: pytest.LogCaptureFixture
    ) -> None:
        for _ in range(2):
            answer = await ask(registered, pull_request(sys_flag=0, sub_version=11))
            assert (answer.code, answer.remark) == (25, "the consumer's subscription not latest")
        assert (
            caplog.text.count("group g pulls topic orders with a newer subscription than its heartbeats") == 1
        )


class TestCommit:
    """The offset a pull carries is stored when the pull is served, not when it is refused."""

    async def test_once_for_a_pull_that_waits(self, filled: Broker) -> None:
        flags = PULL_SUBSCRIPTION | PULL_COMMIT_OFFSET | PULL_SUSPEND
        connection = FakeConnection()
        assert (
            await send(filled, pull_request(3, sys_flag=flags, commit_offset=3), connection=connection)
            is HELD
        )
        assert filled.offsets.query("orders", "g", 0) == 3
        filled.offsets.commit("orders", "g", 0, 5)
        store_message(filled, "orders")
        await turns()
        assert filled.offsets.query("orders", "g", 0) == 5


class TestWaiting:
    """Long polling."""

    @pytest.fixture
    async def waiting(self, filled: Broker) -> FakeConnection:
        """A pull for tag B at the end of queue 0."""
        connection = FakeConnection()
        flags = PULL_SUBSCRIPTION | PULL_SUSPEND
        assert (
            await send(filled, pull_request(3, sys_flag=flags, subscription="B"), connection=connection)
            is HELD
        )
        return connection

    async def test_an_arrival_that_matches_is_delivered(
        self, filled: Broker, waiting: FakeConnection
    ) -> None:
        store_message(filled, "orders", 0, b"new", {"TAGS": "B"})
        await turns()
        (answer,) = waiting.late_answers
        assert bodies(as_asked(cast(Any, answer)).body) == [b"new"]
        assert len(filled.pulling.waiters) == 0

    async def test_another_tag_and_another_queue_wake_no_pull(
        self, filled: Broker, waiting: FakeConnection
    ) -> None:
        store_message(filled, "orders", 0, b"new", {"TAGS": "A"})
        store_message(filled, "orders", 1, b"new", {"TAGS": "B"})
        await turns()
        assert waiting.late_answers == []

    async def test_messages_of_one_turn_come_in_one_answer(
        self, filled: Broker, waiting: FakeConnection
    ) -> None:
        for number in range(3):
            store_message(filled, "orders", 0, f"n{number}".encode(), {"TAGS": "B"})
        await turns()
        (answer,) = waiting.late_answers
        assert bodies(as_asked(cast(Any, answer)).body) == [b"n0", b"n1", b"n2"]

    async def test_the_deadline_brings_an_empty_answer(
        self, filled: Broker, waiting: FakeConnection, clock: VirtualClock
    ) -> None:
        clock.advance(14_999)
        list(filled.pulling.waiters.scan(clock.now_ms(), clock.now_ms(), filled.store.max_offset))
        await turns()
        assert waiting.late_answers == []
        clock.advance(1)
        list(filled.pulling.waiters.scan(clock.now_ms(), clock.now_ms(), filled.store.max_offset))
        await turns()
        (answer,) = waiting.late_answers
        asked = as_asked(cast(Any, answer))
        assert (asked.code, asked.fields["nextBeginOffset"]) == (19, "3")

    async def test_the_scan_tells_how_far_nothing_matched(
        self, filled: Broker, waiting: FakeConnection, clock: VirtualClock
    ) -> None:
        store_message(filled, "orders", 0, b"new", {"TAGS": "A"})
        list(filled.pulling.waiters.scan(clock.now_ms(), clock.now_ms(), filled.store.max_offset))
        await turns()
        (answer,) = waiting.late_answers
        asked = as_asked(cast(Any, answer))
        assert (asked.code, asked.fields["nextBeginOffset"]) == (20, "4")

    async def test_a_closed_connection_is_forgotten(
        self, filled: Broker, waiting: FakeConnection, clock: VirtualClock
    ) -> None:
        waiting.close()
        list(filled.pulling.waiters.scan(clock.now_ms(), clock.now_ms(), filled.store.max_offset))
        assert len(filled.pulling.waiters) == 0

    async def test_only_the_end_of_the_queue_is_worth_waiting_for(self, filled: Broker) -> None:
        for offset in (0, 9):
            flags = PULL_SUBSCRIPTION | PULL_SUSPEND
            assert await send(filled, pull_request(offset, sys_flag=flags)) is not HELD

    async def test_without_the_flag_nothing_waits(self, filled: Broker) -> None:
        assert (await ask(filled, pull_request(3))).code == 19

    async def test_short_polling_waits_its_own_time(
        self, broker_maker: MakeBroker, clock: VirtualClock
    ) -> None:
        broker = broker_maker(long_polling_enable=False)
        broker.topics.update(TopicConfig(topic_name="orders"))
        connection = FakeConnection()
        assert (
            await send(broker, pull_request(sys_flag=PULL_SUBSCRIPTION | PULL_SUSPEND), connection=connection)
            is HELD
        )
        clock.advance(1000)
        list(broker.pulling.waiters.scan(clock.now_ms(), clock.now_ms(), broker.store.max_offset))
        await turns()
        assert len(connection.late_answers) == 1
