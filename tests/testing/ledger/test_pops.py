"""Popped messages: acknowledged, one by one or in a batch; handed out again once their time is over; lost by an ack."""

import pytest
from pocketmq.testing import RocketMQ

from .planted import ack, batch_ack, found, pop, sent, show_again

SERVER = {"ledger": True, "virtual_time": True}


@pytest.fixture(autouse=True)
def _group(one: RocketMQ) -> None:
    one.group("g")


def test_popped_and_acknowledged_is_clean(one: RocketMQ, topic: str) -> None:
    sent(one, topic, 3)
    popped = pop(one, topic)
    ack(one, topic, popped.receipts[0])
    batch_ack(one, topic, popped.receipts[1:])
    assert found(one.ledger.verdict(topic, "g")) == {}
    histories = [one.ledger.message(message.message_id or "") for message in one.messages(topic)]
    assert [(len(one.deliveries), one.acknowledged) for one in histories] == [(1, True)] * 3


def test_only_what_a_batch_names_is_acknowledged(one: RocketMQ, topic: str) -> None:
    sent(one, topic, 4)
    popped = pop(one, topic)
    batch_ack(one, topic, [popped.receipts[0], popped.receipts[2]])
    histories = [one.ledger.message(message.message_id or "") for message in one.messages(topic)]
    assert [history.acknowledged for history in histories] == [True, False, True, False]


@pytest.mark.parametrize("in_batch", [False, True])
def test_an_acknowledged_message_that_no_answer_held_is_lost(
    one: RocketMQ, topic: str, in_batch: bool
) -> None:
    sent(one, topic, 2)
    one.faults.alter(code="POP_MESSAGE", body=b"")
    popped = pop(one, topic)
    assert (popped.records, len(popped.receipts)) == ([], 2)
    if in_batch:
        batch_ack(one, topic, popped.receipts[:1])
    else:
        ack(one, topic, popped.receipts[0])
    verdict = one.ledger.verdict(topic, "g")
    assert found(verdict) == {"lost": [0], "unread": [1]}
    acked = "BATCH_ACK_MESSAGE" if in_batch else "ACK_MESSAGE"
    assert [request.name for request in verdict.lost[0].requests] == ["SEND_MESSAGE_V2", acked]


def test_a_message_that_comes_again_after_its_time_is_no_duplicate(one: RocketMQ, topic: str) -> None:
    sent(one, topic, 1)
    first = pop(one, topic, invisible_ms=10_000)
    assert pop(one, topic).records == []
    one.clock.advance("15s")
    again = pop(one, topic)
    assert [record.body for record in again.records] == [record.body for record in first.records]
    ack(one, topic, again.receipts[0])
    assert found(one.ledger.verdict(topic, "g")) == {}
    history = one.ledger.message(one.messages(topic)[0].message_id or "")
    assert (len(history.deliveries), history.acknowledged) == (2, True)


def test_an_ordered_message_that_was_shown_again_is_no_duplicate(one: RocketMQ, topic: str) -> None:
    sent(one, topic, 2)
    first = pop(one, topic, order=True)
    assert len(first.records) == 2
    for receipt in first.receipts:
        show_again(one, topic, receipt, 1000)
    one.clock.advance("3s")
    again = pop(one, topic, order=True)
    assert [record.queue_offset for record in again.records] == [0, 1]
    assert found(one.ledger.verdict(topic, "g")) == {}


def test_two_answers_to_one_pop_are_a_duplicate(one: RocketMQ, topic: str) -> None:
    sent(one, topic, 1)
    one.faults.duplicate(code="POP_MESSAGE")
    pop(one, topic)
    verdict = one.ledger.verdict(topic, "g")
    assert found(verdict) == {"duplicated": [0]}
    assert {request.name for request in verdict.duplicated[0].requests} == {"POP_MESSAGE"}
