"""Suspended pulls when many are woken at once, when one fails, and when the broker stops."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.filters.sql_filter import MessageFilter, compile_expression
from pocketmq.broker.network.dispatch import HELD, Call
from pocketmq.broker.pulling import pull_handlers, pull_waiters
from pocketmq.broker.pulling.pull_waiters import PullWaiter, PullWaiters
from pocketmq.broker.time.slices import ANSWERS_IN_A_TURN
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.flags import PULL_COMMIT_OFFSET, PULL_SUBSCRIPTION, PULL_SUSPEND
from pocketmq.protocol.requests.pull import PullMessage
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.schema import from_fields, to_fields

from broker_fakes import FakeConnection, MakeBroker, as_asked, pull_request, send, store_message, turns

SUSPENDING = PULL_SUBSCRIPTION | PULL_SUSPEND


class Waiter(PullWaiter):
    def __init__(
        self,
        connection: FakeConnection,
        answer: Callable[[PullWaiter], None],
        expression: str = "",
        queue_id: int = 0,
    ) -> None:
        sql = compile_expression(expression, "SQL92", is_5=True) if expression else None
        request = pull_request(topic="T", queue_id=queue_id)
        super().__init__(Call(connection, Command(11)), request, MessageFilter(sql=sql))
        self._answer = answer

    def answer(self) -> None:
        self._answer(self)


def hold(waiters: PullWaiters, *arguments: Any) -> None:
    waiters.hold(Waiter(*arguments), 1000, 1000)


async def test_thousands_woken_at_once_leave_turns_to_others() -> None:
    waiters = PullWaiters(10_000, asyncio.get_running_loop().call_soon)
    connection, answered = FakeConnection(), list[PullWaiter]()
    for _ in range(3 * ANSWERS_IN_A_TURN + 1):
        hold(waiters, connection, answered.append)
    list(waiters.scan(1000, 1000, lambda topic, queue_id: 0))
    for expected in (1, 2, 3):
        await turns(1)
        assert len(answered) == expected * ANSWERS_IN_A_TURN
    await turns(1)
    assert len(answered) == 3 * ANSWERS_IN_A_TURN + 1
    assert len(waiters) == 0


async def test_compiled_expressions_of_waiting_pulls_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = "a > 1", "a > 2"
    monkeypatch.setattr(pull_waiters, "MAX_CHARACTERS", 200 * len(first + second))
    waiters = PullWaiters(10_000, asyncio.get_running_loop().call_soon)
    connection, answered = FakeConnection(), list[PullWaiter]()
    for _ in range(3):
        hold(waiters, connection, answered.append, first)
        assert not waiters.is_full
    hold(waiters, connection, answered.append, second)
    assert waiters.is_full
    list(waiters.scan(1000, 1000, lambda topic, queue_id: 0))
    await turns(10)
    assert len(answered) == 4
    assert not waiters.is_full
    hold(waiters, connection, answered.append, first)
    assert not waiters.is_full


async def test_pulls_that_come_and_go_while_the_scan_goes_on_are_kept_and_forgotten() -> None:
    waiters = PullWaiters(10_000, asyncio.get_running_loop().call_soon)
    connection, answered = FakeConnection(), list[PullWaiter]()
    for queue_id in range(3):
        waiters.hold(Waiter(connection, answered.append, queue_id=queue_id), 1000, 1000)
    scan = waiters.scan(500, 500, lambda topic, queue_id: 0)
    next(scan)
    waiters.hold(Waiter(connection, answered.append, queue_id=0), 700, 700)
    waiters.arrived("T", 2, 0, 0, b"")
    assert sum(1 for _ in scan) == 3  # two of them in place of what has gone
    assert (len(waiters), waiters.earliest_ms) == (3, 700)
    await turns(1)
    assert [waiter.request.queue_id for waiter in answered] == [2]


async def test_wake_all_says_how_many_turns_it_takes() -> None:
    waiters = PullWaiters(10_000, asyncio.get_running_loop().call_soon)
    connection, answered = FakeConnection(), list[PullWaiter]()
    assert waiters.wake_all() == 0
    for _ in range(ANSWERS_IN_A_TURN + 1):
        hold(waiters, connection, answered.append)
    await turns(waiters.wake_all())
    assert len(answered) == ANSWERS_IN_A_TURN + 1


async def test_a_pull_that_fails_when_woken_gets_an_error_and_the_others_are_answered() -> None:
    waiters = PullWaiters(10, asyncio.get_running_loop().call_soon)
    connection, answered = FakeConnection(), list[PullWaiter]()

    def fail(waiter: PullWaiter) -> None:
        raise KeyError("gone")

    hold(waiters, connection, fail)
    hold(waiters, connection, answered.append)
    waiters.arrived("T", 0, 0, 0, b"")
    await turns(1)
    assert len(answered) == 1
    assert as_asked(connection.late_answers[0]).code == 1


async def test_a_message_is_tested_a_limited_number_of_times_and_wakes_the_rest() -> None:
    waiters = PullWaiters(10_000, asyncio.get_running_loop().call_soon)
    connection, answered = FakeConnection(), list[PullWaiter]()
    long = " OR ".join(["a = 1"] * 700)
    for _ in range(20):
        hold(waiters, connection, answered.append, long)
    waiters.arrived("T", 0, 0, 0, b"a\x012")
    assert len(waiters) == 3  # 50,000 tests are a quarter of a read of 12 messages
    await turns(2)
    assert len(answered) == 2  # a read by SQL is the last of its iteration
    await turns(waiters.wake_all())
    assert len(answered) == 20
    hold(waiters, connection, answered.append, long)
    waiters.arrived("T", 0, 0, 0, b"a\x012")
    assert len(waiters) == 1  # the next iteration tests again


async def test_pulls_with_long_headers_are_not_held_without_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pull_waiters, "MAX_CHARACTERS", 1000)
    waiters = PullWaiters(10_000, asyncio.get_running_loop().call_soon)
    waiter = Waiter(FakeConnection(), lambda waiter: None)
    for length, is_full in ((999, False), (1, True)):
        waiter.call.command.fields = {"subscription": "x" * length}
        waiters.hold(waiter, 1000, 1000)
        assert waiters.is_full is is_full


async def test_a_suspended_pull_keeps_no_body(broker: Broker) -> None:
    """A body is a view of what its connection read, up to 16 MiB."""
    broker.topics.update(TopicConfig(topic_name="orders"))
    command = Command(11, 1, 0, None, to_fields(pull_request(sys_flag=SUSPENDING)), bytes(1_000_000))
    call = Call(FakeConnection(), command)
    request = from_fields(PullMessage, command.fields)
    assert pull_handlers.pull_message(broker.pulling, request, call) is HELD
    assert command.body is None


async def test_pull_before_a_missing_queue_file_is_woken_by_the_next_look(
    broker_maker: MakeBroker, tmp_path: Path
) -> None:
    """OFFSET_FOUND_NULL suspends too; the official hold service compares the requested offset with the end."""
    broker = broker_maker(store={"mapped_file_size_consume_queue": 200})
    broker.topics.update(TopicConfig(topic_name="orders"))
    for _ in range(30):
        store_message(broker, "orders")
    queue = broker.store.consume_queue("orders", 0)
    assert queue is not None
    queue.files.delete(1, 2)
    connection = FakeConnection()
    assert await send(broker, pull_request(12, sys_flag=SUSPENDING), connection=connection) is HELD
    list(broker.pulling.waiters.scan(broker.clock.now_ms(), broker.clock.now_ms(), broker.store.max_offset))
    await turns(1)
    answer = as_asked(cast(Any, connection.late_answers[0]))
    assert (answer.code, answer.fields["nextBeginOffset"]) == (19, "20")


@pytest.mark.parametrize(("role", "offset"), [("SLAVE", -1), ("ASYNC_MASTER", 7)])
async def test_slave_stores_no_offset_that_a_pull_carries(
    broker_maker: MakeBroker, role: str, offset: int
) -> None:
    broker = broker_maker(store={"broker_role": role})
    broker.topics.update(TopicConfig(topic_name="orders"))
    await send(broker, pull_request(sys_flag=PULL_SUBSCRIPTION | PULL_COMMIT_OFFSET, commit_offset=7))
    assert broker.offsets.query("orders", "g", 0) == offset


@pytest.mark.parametrize("emulate", [4, 5])
async def test_slave_sends_the_messages_that_its_answer_counts(
    broker_maker: MakeBroker, emulate: Literal[4, 5]
) -> None:
    """A 4.9 slave without slaveReadEnable, too: a consumer that got `nextBeginOffset` alone would skip them."""
    master = broker_maker()
    master.topics.update(TopicConfig(topic_name="orders"))
    store_message(master, "orders")
    slave = broker_maker(emulate=emulate, store={"broker_role": "SLAVE"})
    slave.topics.update(TopicConfig(topic_name="orders"))
    part = master.store.replication.read(0, 4096)
    assert part is not None
    slave.store.append_copied(0, part)
    slave.store.dispatch_copied()
    answer = as_asked(cast(Any, await send(slave, pull_request())))
    assert (answer.code, answer.fields["nextBeginOffset"]) == (0, "1")
    assert b"hello" in bytes(answer.body)
