"""What attempts, deliveries and requests say together: the figures of a report."""

from types import SimpleNamespace
from typing import Any

import pytest
from pocketmq.broker.errors import Refusal
from pocketmq.testing import EmbeddedServer, RocketMQ
from pocketmq.testing.behave.receives import findings, lost_messages, rebalance_ms, received
from pocketmq.testing.behave.sends import (
    Attempt,
    by_name,
    judged,
    longest_gap_ms,
    reconnects,
    refused,
    sends_of,
    stored_times,
)
from pocketmq.testing.ledger.facts import Queue
from pocketmq.testing.ledger.verdict import Finding, Verdict

# -- sends


def attempt(message: str, at_ms: int, result: str = "SUCCESS", *, oneway: bool = False) -> Attempt:
    return Attempt(message, at_ms, at_ms + 1, result, result == "SUCCESS", oneway, "b0")


def test_attempts_are_counted_by_their_answers() -> None:
    sends = judged(
        [
            attempt("a", 100, "SYSTEM_BUSY"),
            attempt("b", 110),
            attempt("a", 130, "no answer"),
            attempt("a", 200),
            attempt("c", 300, "SYSTEM_BUSY"),
        ],
        start_ms=11,
    )
    assert sends == {
        "sent": 2,
        "first_send_ms": 100,
        "given_up": 1,
        "sends_refused": {"SYSTEM_BUSY": 2, "no answer": 1},
        "sends_retried": {"SYSTEM_BUSY": 1, "no answer": 1},
        "retry_after_ms": 50,  # the median of 30 and 70
    }


def test_one_way_sends_have_no_answer_to_be_judged_by() -> None:
    assert judged([attempt("a", 1, "no answer", oneway=True)], 0) == judged([], 0)


@pytest.mark.parametrize(
    ("times", "began", "end", "longest"),
    [
        ([10, 20, 90, 100], 15, 110, 70),
        ([10, 20], 15, 500, 480),
        ([10], 300, 500, 490),
        ([400], 300, 420, 20),
        ([], 0, 500, None),
    ],
)
def test_the_longest_gap_begins_with_what_was_stored_before_the_trouble(
    times: list[int], began: int, end: int, longest: int | None
) -> None:
    assert longest_gap_ms(times, began, end) == longest


def test_sends_of_a_server_are_found_by_their_unique_id() -> None:
    with EmbeddedServer() as server:
        one = RocketMQ(server)
        one.topic("orders")
        one.faults.refuse(code="SEND_MESSAGE_V2", response="SYSTEM_BUSY", after=1)
        one.send("orders", "a")
        with pytest.raises(Refusal):
            one.send("orders", "b")
        found = sends_of(one.requests)
    assert [(one.result, one.is_stored) for one in found] == [("SUCCESS", True), ("SYSTEM_BUSY", False)]
    assert len({one.message for one in found}) == 2
    assert stored_times(found) == [found[0].answered_ms]


# -- deliveries


def delivery(message: str, stored: int, got: int, *, is_retry: bool = False, topic: str = "T") -> Any:
    queue = Queue("b0", topic, 0)
    return SimpleNamespace(
        group="g",
        message_id=message,
        queue=queue,
        store_timestamp=stored,
        delivered_ms=got,
        is_retry=is_retry,
    )


def test_waits_count_from_the_trouble_on_and_the_first_delivery_counts() -> None:
    got = received(
        [
            delivery("early", 0, 900),
            delivery("held", 100, 1300),
            delivery("held", 100, 5000),
            delivery("quick", 1200, 1210),
            delivery("retry", 0, 9000, is_retry=True),
            delivery("system", 0, 9000, topic="TBW102"),
        ],
        start_ms=200,
        began_ms=1000,
    )
    assert got == {"delivered": 3, "redelivered": 1, "first_message_ms": 700, "longest_wait_ms": 300}


def test_an_answer_that_arrives_twice_is_no_duplicate() -> None:
    def finding(*ids: int) -> Any:
        return SimpleNamespace(requests=[SimpleNamespace(id=number) for number in ids])

    verdict: Any = SimpleNamespace(
        lost=[finding()],
        duplicated=[finding(7, 7), finding(7, 8)],
        out_of_order=[],
        offset_moved_back=[],
        unread=[],
    )
    found = findings([verdict, verdict])
    assert (found["duplicated"], found["lost"], found["unread"]) == (2, 2, 0)


def test_lost_messages_are_named() -> None:
    lost = [Finding(f"id-{number}", [], "b0", "orders", 1, number) for number in range(30)]
    named = lost_messages(
        [Verdict(topic="orders", group="billing"), Verdict(topic="orders", group="g", lost=lost)]
    )
    assert len(named) == 20
    assert named[3] == "id-3 (orders of b0, queue 1, offset 3, group g)"


# -- requests


def asked(name: str, at_ms: int = 0, **more: Any) -> Any:
    words = {"client_id": "c", "broker": "b0", "topic": "T", "queue_id": 0, "peer": "p:1", "oneway": False}
    return SimpleNamespace(**{**words, "name": name, "at_ms": at_ms, "response": 0, **more})


def pull(client: str, queue: int, at_ms: int) -> Any:
    return asked("PULL_MESSAGE", at_ms, client_id=client, queue_id=queue)


def test_a_rebalance_ends_when_no_other_member_reads_a_queue() -> None:
    requests = [
        *(pull("old", queue, 100) for queue in (0, 1)),
        asked("HEART_BEAT", 1050, client_id="new"),
        pull("new", 1, 1100),
        pull("old", 1, 1300),
        pull("old", 0, 1400),
        pull("new", 1, 1500),
    ]
    assert rebalance_ms(requests, joined_ms=[1000], left_ms=[]) == 250, (
        "from the heartbeat to the last of the other"
    )
    left = [*requests, pull("old", 1, 2030)]
    assert rebalance_ms(left, joined_ms=[1000], left_ms=[2000]) == 250
    assert rebalance_ms(left, joined_ms=[], left_ms=[2000]) == 30
    assert rebalance_ms(requests[:2], joined_ms=[50], left_ms=[]) is None


def test_ordinary_answers_and_held_pulls_are_no_refusals() -> None:
    requests = [
        asked("PULL_MESSAGE", response=None),
        asked("PULL_MESSAGE", response=19),
        asked("HEART_BEAT", response=None),
        asked("UPDATE_CONSUMER_OFFSET", response=None, oneway=True),
        asked("PULL_MESSAGE", response=2),
        asked("SEND_MESSAGE_V2", response=2),
    ]
    assert refused(requests) == {"HEART_BEAT: no answer": 1, "PULL_MESSAGE: SYSTEM_BUSY": 1}
    assert by_name(requests)["PULL_MESSAGE"] == 3


def test_connections_beyond_the_first_are_reconnects() -> None:
    requests = [
        asked("GET_ROUTEINFO_BY_TOPIC", peer="p:1", broker=None, client_id=None),
        asked("PULL_MESSAGE", peer="p:2", client_id=None),
        asked("PULL_MESSAGE", peer="p:2"),
        asked("PULL_MESSAGE", peer="p:3", broker="b1"),
        asked("PULL_MESSAGE", peer="p:4", client_id="d"),
    ]
    assert reconnects(requests, programs=1) == 0
    again = [
        *requests,
        asked("PULL_MESSAGE", peer="p:5"),
        asked("GET", peer="p:6", broker=None, client_id=None),
    ]
    assert reconnects(again, programs=1) == 2
    assert reconnects(again, programs=2) == 1
