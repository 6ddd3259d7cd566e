"""Acknowledgements: which are stored, which are accepted without effect."""

from functools import partial

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.pop.revive_log import AckedPop
from pocketmq.core.records import Message
from pocketmq.protocol.bodies.pop import BatchAck, BatchAckMessageRequestBody, bit_set_of
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.topics import TIMER_TOPIC
from pocketmq.protocol.requests.pop import AckMessage, BatchAckMessage
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.schema import to_fields
from pocketmq.store.put_values import Placed

from broker.pop.pops import an_ack, pass_time, popped
from broker_fakes import ask, record_at
from wire_without_socket import Wire

MAX_DELAY_MS = 3 * 24 * 3600 * 1000
"""timerMaxDelaySec, three days unless it is set."""


def stored(broker: Broker) -> int:
    """Acks wait in the timer topic until they are due."""
    return broker.store.max_offset(TIMER_TOPIC, 0)


def tag(broker: Broker, offset: int) -> str:
    return decode_properties(record_at(broker, TIMER_TOPIC, 0, offset).properties)["TAGS"]


@pytest.mark.parametrize(
    ("due_in_ms", "revive_queue", "broker_name", "is_stored"),
    [
        (10_000, 0, "broker-a", True),
        (MAX_DELAY_MS, 7, "broker-a", True),
        (MAX_DELAY_MS + 1, 7, "broker-a", False),
        (10_000, 8, "broker-a", False),
        (10_000, -1, "broker-a", False),
        (10_000, 0, "b" * (1024 - len("orders" + "g")), True),
        (10_000, 0, "b" * (1025 - len("orders" + "g")), False),
    ],
)
async def test_ack_that_no_checkpoint_can_have_is_accepted_and_not_stored(
    filled: Broker, due_in_ms: int, revive_queue: int, broker_name: str, is_stored: bool
) -> None:
    pop_time_ms = filled.clock.now_ms()
    text = f"0 {pop_time_ms} {due_in_ms} {revive_queue} 0 {broker_name} 0 0"
    ack = AckMessage(consumer_group="g", topic="orders", queue_id=0, extra_info=text, offset=0)
    assert (await ask(filled, ack)).code == 0
    assert stored(filled) == is_stored
    batch = BatchAck(
        consumer_group="g",
        topic="orders",
        retry="0",
        revive_queue_id=revive_queue,
        pop_time=pop_time_ms,
        invisible_time=due_in_ms,
        bit_set=bit_set_of([1, 2]),
    )
    body = BatchAckMessageRequestBody(broker_name=broker_name, acks=[batch]).encode()
    assert (await ask(filled, BatchAckMessage(), body)).code == 0
    assert stored(filled) == 2 * is_stored


async def test_batch_of_acks_needs_no_broker_name(filled: Broker) -> None:
    pop_time_ms = filled.clock.now_ms()
    batch = BatchAck("g", "orders", "0", pop_time=pop_time_ms, invisible_time=10_000, bit_set=bit_set_of([0]))
    body = BatchAckMessageRequestBody(acks=[batch]).encode()
    assert (await ask(filled, BatchAckMessage(), body)).code == 0
    assert stored(filled) == 1


async def test_acks_of_one_pop_that_arrive_together_are_one_record(filled: Broker) -> None:
    answer, _ = await popped(filled)
    pop_time_ms, revive_queue = int(answer.fields["popTime"]), int(answer.fields["reviveQid"])
    pop = AckedPop("orders", "g", "broker-a", 0, 0, pop_time_ms, revive_queue, pop_time_ms + 10_000)
    other = pop._replace(start_offset=7)
    refused = pop._replace(start_offset=8, due_ms=pop_time_ms + MAX_DELAY_MS + 1)
    acks = [(pop, 0), (other, 7), (refused, 8), (pop, 1), (pop, 3)]
    first, refusals = stored(filled), filled.popping.revive_log.put_acks(acks)
    assert [refusal is None for refusal in refusals] == [True, True, False, True, True]
    assert [tag(filled, offset) for offset in range(first, stored(filled))] == ["bAck", "ack"]
    pass_time(filled, 20)
    assert (await popped(filled))[1] == ["m2"]


@pytest.mark.parametrize("is_refused", [False, True])
async def test_acks_of_one_pass_are_stored_in_one_append_and_answered_then(
    filled: Broker, monkeypatch: pytest.MonkeyPatch, is_refused: bool
) -> None:
    answer, _ = await popped(filled)
    before, appends, append_all = stored(filled), list[int](), filled.store.append_all

    def counted(messages: list[Message]) -> Placed:
        appends.append(len(messages))
        return append_all(messages)

    monkeypatch.setattr(filled.store, "append_all", counted)
    filled.config.store.timer_wheel_enable = not is_refused
    wire = Wire(filled)
    frames = [
        encode_frame(Command(ack.code, offset, fields=to_fields(ack)))
        for offset, ack in enumerate(an_ack(answer, offset) for offset in (0, 9, 1, 2))
    ]
    replies = FrameCutter().feed(await wire.exchange(*frames))
    wire.end()
    wrong_offset, last = int(ResponseCode.NO_MESSAGE), 1 if is_refused else 0
    assert {reply.opaque: reply.code for reply in replies} == {0: last, 1: wrong_offset, 2: last, 3: last}
    assert appends == ([] if is_refused else [3])
    kept = [tag(filled, offset) for offset in range(before, stored(filled))]
    assert kept == ([] if is_refused else ["ack"] * 3)


async def test_a_call_waits_for_the_end_of_its_pass_only_while_one_is_handled(filled: Broker) -> None:
    wire = Wire(filled)
    ended: list[str] = []
    wire.connection.at_pass_end(partial(ended.append, "outside"))
    assert ended == ["outside"]
    wire.end()
