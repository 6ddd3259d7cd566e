"""Checkpoints and acks as texts and records: stored together or one by one, they leave the same files."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pocketmq.broker.pop.revive_log import AckedPop, ReviveRecord, ack_record, checkpoint_record
from pocketmq.protocol.bodies.revive import Ack, CheckPoint
from pocketmq.store import VirtualClock

from broker_fakes import FakeLoop, close_broker, make_broker
from stored_files import stored_files

NAMES = st.sampled_from(["g", "group-of-some-length", "%RETRY%g_t", "ü"])
RECORDS = st.tuples(
    st.booleans(),
    NAMES,
    NAMES,
    st.integers(0, 20_000),
    st.sampled_from([-1, 0, 1, 999, 1000, 59_123, 60_000, 10**9, 1 << 50]),
    st.sampled_from([0, 3, 9, 10, 11]),
)


def ack_of(record: tuple[bool, str, str, int, int, int], now_ms: int) -> ReviveRecord:
    _, topic, group, offset, ahead_ms, queue_id = record
    return ack_record(AckedPop(topic, group, "b", 0, 1, now_ms, queue_id, now_ms + ahead_ms), offset)


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(records=st.lists(RECORDS, min_size=15, max_size=40))
async def test_acks_stored_together_are_as_stored_one_by_one(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[tuple[bool, str, str, int, int, int]],
) -> None:
    folder = tmp_path_factory.mktemp("revive")
    seen = []
    for together in (1, 7):
        clock = VirtualClock()
        store = {"mapped_file_size_commit_log": 8192, "max_hash_slot_num": 8, "max_index_num": 40}
        broker = make_broker(folder / str(together), clock, loop=FakeLoop(clock), store=store)
        broker.delayed.timer.start()
        acks = [ack_of(record, clock.now_ms()) for record in records * 2]
        refusals = []
        for at in range(0, len(acks), together):
            refusals += broker.popping.revive_log.put_records(acks[at : at + together])
        remarks = [None if refusal is None else refusal.remark for refusal in refusals]
        timer = broker.delayed.timer
        seen.append(
            (
                remarks,
                (timer.enqueued, timer.waiting, timer.messages_behind),
                stored_files(folder / str(together)),
            )
        )
        close_broker(broker)
    assert seen[0] == seen[1]


@given(
    names=st.tuples(*[st.text(max_size=20)] * 3),
    numbers=st.tuples(*[st.integers(-(1 << 63), (1 << 63) - 1)] * 4),
)
def test_an_ack_has_the_text_of_its_body(
    names: tuple[str, str, str], numbers: tuple[int, int, int, int]
) -> None:
    topic, group, broker_name = names
    queue_id, offset, start_offset, pop_time = numbers
    ack = Ack(
        ack_offset=offset,
        start_offset=start_offset,
        group=group,
        topic=topic,
        queue_id=queue_id,
        pop_time=pop_time,
        broker_name=broker_name,
    )
    record = ack_record(AckedPop(topic, group, broker_name, queue_id, start_offset, pop_time, 3, 4), offset)
    assert record.body == ack.encode()
    assert record.key == f"{topic}@{queue_id}@{offset}@{group}@{pop_time}@{broker_name}@ack"
    assert (record.tag, record.queue_id, record.due_ms) == ("ack", 3, 4)


@given(
    names=st.tuples(*[st.none() | st.text(max_size=20)] * 3),
    numbers=st.tuples(*[st.integers(-(1 << 62), 1 << 62)] * 6),
    diffs=st.none() | st.lists(st.integers(-(1 << 62), 1 << 62)),
    rare=st.sampled_from(
        [{}, {}, {"suspend": True}, {"bit_map": 3}, {"revive_offset": 7}, {"re_put_times": ""}]
    ),
)
def test_a_checkpoint_has_the_text_of_its_body(
    names: tuple[str | None, ...], numbers: tuple[int, ...], diffs: list[int] | None, rare: dict[str, object]
) -> None:
    topic, group, broker_name = names
    start_offset, pop_time, invisible_time, revive_time, num, queue_id = numbers
    point = CheckPoint(
        start_offset=start_offset,
        pop_time=pop_time,
        invisible_time=invisible_time,
        revive_time=revive_time,
        num=num,
        queue_id=queue_id,
        topic=topic,
        group=group,
        diffs=diffs,
        broker_name=broker_name,
        **rare,  # type: ignore[arg-type]
    )
    record = checkpoint_record(point, 3)
    assert record.body == point.encode()
    assert record.key == f"{topic}@{queue_id}@{start_offset}@{group}@{pop_time}@{broker_name}@ck"
    assert (record.tag, record.queue_id) == ("ck", 3)
    assert record.due_ms == pop_time + invisible_time - 1000
