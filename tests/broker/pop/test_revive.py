"""The revival of popped messages: limited work in each iteration, damaged and forged records, failures."""

import itertools
from typing import Any

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.pop.revive import Revive
from pocketmq.broker.time.slices import ITEMS_IN_A_TURN, MAX_LATE_FACTOR
from pocketmq.protocol.bodies.revive import REVIVE_GROUP, CheckPoint
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import Record, decode_records
from pocketmq.protocol.message.topics import revive_topic
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import MessageStore, NewMessage, PutStatus
from pocketmq.store.put_values import AppendResult

from broker.pop.pops import pass_time, popped
from broker_fakes import FakeLoop, ask, send_request, store_message

REVIVE_TOPIC = revive_topic("DefaultCluster")


def restarted(broker: Broker) -> Revive:
    """The same work by a new process."""
    return Revive(broker.state, broker.delayed.timer, broker.popping.revive_log)


async def test_the_place_of_the_revive_group_outlives_a_restart(filled: Broker) -> None:
    await popped(filled, max_msg_nums=1)
    pass_time(filled, 9)
    filled.popping.revive = restarted(filled)  # all it had in memory is gone
    pass_time(filled, 10)
    assert filled.offsets.query(REVIVE_TOPIC, REVIVE_GROUP, 0) == 0
    filled.popping.revive = restarted(filled)
    pass_time(filled, 5)
    retry = filled.store.max_offset("%RETRY%g_orders", 0)
    assert retry == 1  # and not a second time


async def test_nothing_is_revived_while_the_disk_holds_acks_back(
    filled: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under SYNC_FLUSH records are visible once the disk has them; on a busy broker, some never are."""
    await popped(filled, max_msg_nums=1)
    pass_time(filled, 5)
    visible = filled.store.log_end
    behind = property(lambda store: max(store.log_end - visible, 0))
    monkeypatch.setattr(MessageStore, "dispatch_behind_bytes", behind)
    store_message(filled, "other")
    pass_time(filled, 30)
    assert filled.store.max_offset("%RETRY%g_orders", 0) == 0
    for _ in range(3):
        visible = filled.store.log_end
        store_message(filled, "other")
        pass_time(filled, 1)
    assert filled.store.max_offset("%RETRY%g_orders", 0) == 1


@pytest.mark.parametrize(
    ("tag", "body"),
    [
        ("ck", b"{"),
        ("ck", b"[]"),
        ("ck", b'{"so":"x"}'),
        ("ck", b'{"n":1}'),
        ("ack", b"\xff\xfe"),
        ("bAck", b'{"aol":7}'),
        ("what", b"{}"),
        ("ck", b'{"t":"orders","c":"g","so":0,"n":1,"pt":1,"it":1,"q":999999}'),
        ("ck", b'{"t":"nowhere","c":"g","so":0,"n":1,"pt":1,"it":1}'),
        ("ck", b'{"t":"orders","c":"g","so":0,"n":2147483647,"pt":1,"it":1}'),
        ("ck", b'{"t":"orders","c":"g","d":[%b],"pt":1,"it":1}' % b",".join([b"4"] * 200)),
        ("ck", b'{"t":"orders","c":"g","so":1e300,"n":1,"pt":1,"it":1}'),
        ("ck", b'{"t":"orders","c":"g","n":1,"pt":1,"it":1,"x":"%b"}' % (b"x" * 70_000)),
    ],
)
async def test_nonsense_in_a_revive_queue_is_skipped(filled: Broker, tag: str, body: bytes) -> None:
    store_message(filled, REVIVE_TOPIC, 0, body, {"TAGS": tag})
    answer, _ = await popped(filled)
    assert answer.fields["reviveQid"] == "0"
    pass_time(filled, 20)
    assert len((await popped(filled))[1]) == 4


async def test_clients_cannot_write_what_the_broker_reads_back(filled: Broker) -> None:
    for topic in (REVIVE_TOPIC, revive_topic("other"), "rmq_sys_wheel_timer"):
        refused = await ask(filled, send_request(topic, properties="TAGS\1ck\2"), b"{}")
        assert refused.code == ResponseCode.NO_PERMISSION
        assert refused.remark == f"Sending message to topic[{topic}] is forbidden."


async def test_an_offset_behind_the_end_of_a_revive_queue_does_not_stop_it(filled: Broker) -> None:
    await popped(filled)
    pass_time(filled, 9)
    filled.offsets.commit(REVIVE_TOPIC, REVIVE_GROUP, 0, 1 << 60)
    pass_time(filled, 10)
    filled.popping.next_revive_queue = lambda: 0  # type: ignore[method-assign]
    store_message(filled, "orders", 0, b"m4")
    assert (await popped(filled))[1] == ["m4"]
    pass_time(filled, 20)
    assert "m4" in (await popped(filled))[1]


async def test_one_iteration_revives_a_limited_number_of_messages(filled: Broker, loop: FakeLoop) -> None:
    for number in range(996):
        store_message(filled, "orders", 0, b"n%d" % number)
    while (await popped(filled))[1]:
        pass
    loop.run_for(9000)
    filled.popping.revive.tick = lambda: None  # type: ignore[method-assign]
    loop.run_for(6000)
    revived = [0]
    while filled.popping.revive.run(filled.clock.now_ms()) or revived[-1] < 1000:
        revived.append(filled.store.max_offset("%RETRY%g_orders", 0))
    assert revived[-1] == 1000
    assert max(after - before for before, after in itertools.pairwise(revived)) <= 100


async def test_messages_are_revived_although_as_many_records_arrive_as_one_iteration_reads(
    filled: Broker, loop: FakeLoop
) -> None:
    await popped(filled, max_msg_nums=1)
    loop.run_for(5000)
    revive = filled.popping.revive
    revive.tick = lambda: None  # type: ignore[method-assign]
    for _ in range(20):
        loop.run_for(500)
        due = {"TAGS": "another", "TIMER_DELIVER_MS": str(filled.clock.now_ms())}
        for _ in range(ITEMS_IN_A_TURN):
            store_message(filled, REVIVE_TOPIC, 0, b"", due)
        assert revive.run(filled.clock.now_ms())
    assert filled.store.max_offset("%RETRY%g_orders", 0) == 1


async def test_old_records_are_read_faster(filled: Broker) -> None:
    revive, count = filled.popping.revive, ITEMS_IN_A_TURN * (2 + MAX_LATE_FACTOR)
    old = {"TAGS": "another", "TIMER_DELIVER_MS": str(filled.clock.now_ms() - 60_000)}
    for _ in range(count):
        store_message(filled, REVIVE_TOPIC, 0, b"", old)
    assert revive.run(filled.clock.now_ms())
    assert revive._queues[0].next_offset == ITEMS_IN_A_TURN
    assert revive.run(filled.clock.now_ms())
    assert revive._queues[0].next_offset == ITEMS_IN_A_TURN * (1 + MAX_LATE_FACTOR)


async def test_long_messages_count_as_several(filled: Broker, loop: FakeLoop) -> None:
    for _ in range(20):
        store_message(filled, "orders", 0, bytes(1_000_000))
    await popped(filled, max_msg_nums=8)
    await popped(filled, max_msg_nums=8)
    await popped(filled, max_msg_nums=8)
    loop.run_for(13_000)
    while not (revived := filled.store.max_offset("%RETRY%g_orders", 0)):
        filled.popping.revive.run(filled.clock.now_ms())
    assert revived <= 8


async def test_a_message_that_fails_is_skipped_and_nothing_is_copied_twice(
    filled: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_copy = Revive._store_copy

    def fail_for_one(self: Revive, check_point: CheckPoint, message: Record) -> Any:
        if message.queue_offset == 1:
            raise RuntimeError("unforeseen")
        return store_copy(self, check_point, message)

    monkeypatch.setattr(Revive, "_store_copy", fail_for_one)
    await popped(filled)
    pass_time(filled, 30)
    assert (await popped(filled))[1] == ["m0", "m2", "m3"]
    assert filled.store.max_offset("%RETRY%g_orders", 0) == 3


async def test_a_checkpoint_that_fails_is_skipped_and_those_before_it_are_finished(
    filled: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.popping.next_revive_queue = lambda: 0  # type: ignore[method-assign]
    for _ in range(4):
        await popped(filled, max_msg_nums=1)
    revive, calls = Revive._revive, itertools.count()

    def fail_once(*arguments: Any) -> bool:
        if next(calls) == 1:
            raise RuntimeError("unforeseen")
        return revive(*arguments)

    monkeypatch.setattr(Revive, "_revive", fail_once)
    pass_time(filled, 30)
    assert (await popped(filled))[1] == ["m0", "m2", "m3"]
    assert filled.offsets.query(REVIVE_TOPIC, REVIVE_GROUP, 0) >= 3


async def test_a_disk_that_refuses_everything_loses_no_message(
    filled: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await popped(filled)
    pass_time(filled, 10)
    append, refused = filled.store.append, AppendResult(PutStatus.SERVICE_NOT_AVAILABLE)
    refuses = {2}

    def refuse_from_the_second_on(message: NewMessage) -> AppendResult:
        refuses.add(len(refuses))
        return append(message) if len(refuses) < 3 else refused

    monkeypatch.setattr(filled.store, "append", refuse_from_the_second_on)
    pass_time(filled, 20)
    monkeypatch.setattr(filled.store, "append", append)
    pass_time(filled, 20)
    assert sorted((await popped(filled))[1]) == ["m0", "m1", "m2", "m3"]
    assert filled.store.max_offset("%RETRY%g_orders", 0) == 4


async def test_next_work_is_when_there_is_something_to_read_or_to_finish(
    filled: Broker, loop: FakeLoop, broker4: Broker
) -> None:
    revive = filled.popping.revive
    assert revive.next_due() is None
    assert (await popped(filled))[1]
    loop.run_for(9_100)
    assert revive.next_due() == filled.clock.now_ms(), "its checkpoint"
    assert not revive.run(filled.clock.now_ms())
    finished_at_ms = revive.next_due()
    assert finished_at_ms is not None
    loop.run_for(finished_at_ms - filled.clock.now_ms() - 1)
    for ms, copies in ((0, 0), (1, 4)):
        loop.run_for(ms)
        assert not revive.run(filled.clock.now_ms())
        assert filled.store.max_offset("%RETRY%g_orders", 0) == copies
    assert revive.next_due() is None
    assert broker4.popping.revive.next_due() is None


async def test_copies_keep_the_time_of_the_first_pop(filled: Broker) -> None:
    """Official: set by the first copy, whatever the message says, and where it is missing."""
    forged = {"1ST_POP_TIME": "7"}
    store_message(filled, "orders", 0, b"forged", forged)
    first_ms = filled.clock.now_ms()
    assert len((await popped(filled))[1]) == 5
    pass_time(filled, 16)
    for _ in range(2):
        answer, found = await popped(filled)
        assert len(found) == 5
        for record in decode_records(answer.body):
            assert decode_properties(record.properties)["1ST_POP_TIME"] == str(first_ms)
        pass_time(filled, 16)


class Log:
    """Where checkpoints are stored: keeps them, with the number of their revive queue."""

    def __init__(self) -> None:
        self.points: list[tuple[CheckPoint, int]] = []

    def put_checkpoint(self, point: CheckPoint, revive_queue_id: int) -> None:
        self.points.append((point, revive_queue_id))


OFFICIAL_SECONDS = (10, 20, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
"""ckRewriteIntervalsInSeconds of PopReviveService."""


@pytest.mark.parametrize(
    ("before", "seconds"),
    [(None, 10), *enumerate(OFFICIAL_SECONDS), (17, 7200), (999, 7200), ("what", 7200)],
)
async def test_checkpoint_of_a_refused_message_is_due_later_each_time(
    filled: Broker, monkeypatch: pytest.MonkeyPatch, before: object, seconds: int
) -> None:
    log, now_ms = Log(), filled.clock.now_ms()
    revive = Revive(filled.state, filled.delayed.timer, log)  # type: ignore[arg-type]
    point = CheckPoint(
        start_offset=1,
        pop_time=now_ms - 20_000,
        invisible_time=10_000,
        num=2,
        topic="orders",
        group="g",
        diffs=[0, 2],
        broker_name="broker-a",
        re_put_times=None if before is None else str(before),
    )
    store_message(filled, REVIVE_TOPIC, 5, point.encode(), {"TAGS": "ck"})
    refused = AppendResult(PutStatus.SERVICE_NOT_AVAILABLE)
    monkeypatch.setattr(filled.store, "append", lambda message: refused)
    assert not revive.run(now_ms)
    assert [(one.offsets(), one.due_ms, queue_id) for one, queue_id in log.points] == [
        ([1], now_ms + seconds * 1000, 5),
        ([3], now_ms + seconds * 1000, 5),
    ]
    times = 0 if before is None else before if isinstance(before, int) else 127
    assert {one.re_put_times for one, _ in log.points} == {str(times + 1)}


async def test_a_deleted_topic_stops_nothing(filled: Broker) -> None:
    await popped(filled)
    filled.topics.delete("orders")
    pass_time(filled, 20)
    assert filled.offsets.query(REVIVE_TOPIC, REVIVE_GROUP, 0) == 0
    assert filled.store.max_offset("%RETRY%g_orders", 0) == 0
