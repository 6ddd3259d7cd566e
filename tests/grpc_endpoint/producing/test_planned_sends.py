"""Sends by a plan leave the same bytes and get the same replies as sends of the ordinary way."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pocketmq.broker.transactions.op_queue import record_at_offset
from pocketmq.grpc_endpoint.messages import Code, Encoding, Message, MessageType, timestamp_of
from pocketmq.grpc_endpoint.producing.planned_sends import NOTHING, Planned
from pocketmq.protocol.message.record import Record

from grpc_calls import GrpcBroker, new_message, send

IDS = st.integers(0, 2**32 - 1).map(lambda number: f"01AABBCCDDEEFF001122334455{number:08X}")
TEXT = st.sampled_from(["", " ", "a b", "order-1", "\x01", "\x02", "é", "x" * 300]) | st.text(
    st.characters(exclude_categories=("Cs",)), max_size=8
)
KEPT_IDS = IDS | TEXT.filter(lambda text: not {"\x01", "\x02"} & set(text))
"""For an id that ends the stored text early the broker makes one of its own, which is never the same."""
CASES = st.builds(
    lambda message_id, body, user, born_ms, about: new_message(
        "t", body, message_id, user, born_timestamp=timestamp_of(born_ms), **about
    ),
    KEPT_IDS,
    st.binary(max_size=40),
    st.dictionaries(st.sampled_from(["k", "order"]) | TEXT, TEXT, max_size=2),
    st.sampled_from([1_790_000_000_005, 1_790_000_000_006, 0, -1, 10**13]),
    st.fixed_dictionaries(
        {},
        optional={
            "tag": st.sampled_from(["A", "é", "", "a|b"]),
            "keys": st.lists(TEXT, max_size=2),
            "message_type": st.sampled_from(MessageType),
            "body_encoding": st.sampled_from(Encoding),
            "delivery_attempt": st.sampled_from([0, 1, 7]),
            "born_host": st.sampled_from(["", "myhost"]),
            "message_group": st.sampled_from(["", "g"]),
            "priority": st.integers(0, 2),
            "trace_context": st.just("tc"),
        },
    ),
)


@pytest.fixture
async def twins(grpc_maker: Callable[..., GrpcBroker]) -> tuple[GrpcBroker, GrpcBroker]:
    """An endpoint with plans, and one without."""
    both = grpc_maker(), grpc_maker()
    for grpc in both:
        grpc.topic("t", "MIXED", queues=1)
    without: Any = both[1].producing.planned
    without.store, without.learn = lambda *_: NOTHING, lambda *_: None
    return both


def stored(grpc: GrpcBroker) -> list[Record]:
    state = grpc.broker.state
    queues = [queue for queue in state.store.queues_of("t") if queue.max_offset]
    return [
        record
        for queue in queues
        for offset in range(queue.min_offset, queue.max_offset)
        if (record := record_at_offset(state, queue, offset)) is not None
    ]


def shown(records: list[Record]) -> list[object]:
    return [
        (
            bytes(record.body),
            bytes(record.properties),
            record.position,
            record.size,
            record.queue_offset,
            record.sys_flag,
            record.flag,
            record.body_crc,
            record.born_timestamp,
            record.born_host,
            record.store_host,
            record.reconsume_times,
        )
        for record in records
    ]


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    cases=st.lists(st.lists(CASES, min_size=1, max_size=3), min_size=1, max_size=4), times=st.integers(1, 3)
)
async def test_they_are_the_same_bytes(
    twins: tuple[GrpcBroker, GrpcBroker], cases: list[list[Message]], times: int
) -> None:
    with_plans, without = twins
    for sent in cases * times:
        replies = [grpc.call(send(*sent)) for grpc in twins]
        assert replies[0] == replies[1]
    assert shown(stored(with_plans)) == shown(stored(without))


async def test_the_third_message_of_a_shape_is_stored_by_a_plan(grpc: GrpcBroker) -> None:
    grpc.topic("t", queues=1)
    by_plan: list[Planned] = []
    plans: Any = grpc.producing.planned
    store = plans.store
    plans.store = lambda call, sent: by_plan.append(store(call, sent)) or by_plan[-1]
    for number in range(4):
        message = new_message(
            "t", b"x", f"01AABBCCDDEEFF001122334455{number:08X}", {"k": f"{number}"}, keys=["a"]
        )
        assert grpc.call(send(message)).entries[0].offset == number
    assert [list(planned.offsets) for planned in by_plan] == [[], [], [2], [3]]


async def test_a_plan_ends_with_a_change_of_its_topic(grpc: GrpcBroker) -> None:
    grpc.topic("t", queues=1)
    for _ in range(3):
        assert grpc.call(send(new_message("t"))).status.code == Code.OK
    grpc.topic("t", "FIFO", queues=1)
    assert grpc.call(send(new_message("t"))).status.code != Code.OK
    grpc.topic("t", queues=1, perm=4)
    assert grpc.call(send(new_message("t"))).status.code != Code.OK


async def test_a_queue_is_not_drawn_again_because_it_was_empty(
    grpc: GrpcBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ordinary way begins a queue. If it drew once more, an empty queue would stay empty for long."""
    grpc.topic("t", queues=4)
    for _ in range(3):
        grpc.call(send(new_message("t")))
    drawn = iter([2, 0, 3, 1] * 2)
    monkeypatch.setattr(grpc.producing.random, "randrange", lambda queues: next(drawn))
    for _ in range(8):
        grpc.call(send(new_message("t")))
    state = grpc.broker.state
    assert sum(queue.max_offset for queue in state.store.queues_of("t")) == 11
    assert all(queue.max_offset >= 2 for queue in state.store.queues_of("t"))
    assert len(state.store.queues_of("t")) == 4
