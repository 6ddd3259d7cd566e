"""Acknowledgements: which are stored, which are accepted without effect."""

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.protocol.bodies.pop import BatchAck, BatchAckMessageRequestBody, bit_set_of
from pocketmq.protocol.message.topics import TIMER_TOPIC
from pocketmq.protocol.requests.pop import AckMessage, BatchAckMessage

from broker_fakes import ask

MAX_DELAY_MS = 3 * 24 * 3600 * 1000
"""timerMaxDelaySec, three days unless it is set."""


def stored(broker: Broker) -> int:
    """Acks wait in the timer topic until they are due."""
    return broker.store.max_offset(TIMER_TOPIC, 0)


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
