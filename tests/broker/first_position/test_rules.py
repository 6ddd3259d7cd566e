"""The rules of a first position as a table. Conformance sends the same rows to official brokers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.broker.first_position.rules import (
    FROM_FIRST,
    FROM_LAST,
    FROM_TIMESTAMP,
    Decision,
    QueueFacts,
    Rule,
    client_start,
    decide,
)

MAX = 9
SEARCH = None
"""The client then searches by its consumeTimestamp."""


def row(in_4: str, in_5: str | None = None, **facts: Any) -> tuple[QueueFacts, Decision, Decision]:
    """The facts, and the answer of the 4.9 line and of the 5.x line: a rule and its offset, `-` is QUERY_NOT_FOUND."""
    answers = [answer.split() for answer in (in_4, in_5 or in_4)]
    first, second = (Decision(Rule(rule), None if offset == "-" else int(offset)) for rule, offset in answers)
    return QueueFacts(**facts), first, second


ROWS = {
    "stored": row("B1 3", stored_offset=3, is_first_message_hot=True),
    "stored zero": row("B1 0", stored_offset=0),
    "stored below min": row("B1 1", stored_offset=1, min_offset=5),
    "minus one is no offset": row("B4 0", stored_offset=-1, is_first_message_hot=True),
    "reset pending": row("B1 2", "B0 2", reset_offset=2, stored_offset=2, is_first_message_hot=True),
    "reset pending to zero": row("B1 4", "B0 0", reset_offset=0, stored_offset=4),
    "default forbidden": row("B4 0", "B2 -", set_zero_if_not_found=False, is_first_message_hot=True),
    "default forbidden, stored": row("B1 3", set_zero_if_not_found=False, stored_offset=3),
    "default forbidden, reset pending": row("B6 0", "B0 2", set_zero_if_not_found=False, reset_offset=2),
    "default allowed, empty": row("B6 0", "B6 -", set_zero_if_not_found=True),
    "history deleted": row("B3 -", min_offset=5),
    "history deleted, default allowed": row("B3 -", min_offset=5, set_zero_if_not_found=True),
    "hot": row("B4 0", is_first_message_hot=True),
    "cold": row("B5 -", is_first_message_hot=False),
    "empty or unknown": row("B6 0", "B6 -"),
}


@pytest.mark.parametrize(("facts", "in_4", "in_5"), ROWS.values(), ids=ROWS)
def test_answer_of_the_broker(facts: QueueFacts, in_4: Decision, in_5: Decision) -> None:
    assert decide(facts, is_5=False) == in_4
    assert decide(facts, is_5=True) == in_5


# decision | LAST, FIRST, TIMESTAMP on a normal topic | on a %RETRY% topic
STARTS = [
    (Decision(Rule.STORED_OFFSET, 3), (3, 3, 3), (3, 3, 3)),
    (Decision(Rule.RESET_PENDING, 2), (2, 2, 2), (2, 2, 2)),
    (Decision(Rule.FIRST_MESSAGE_HOT, 0), (0, 0, 0), (0, 0, 0)),
    (Decision(Rule.NO_FIRST_MESSAGE, 0), (0, 0, 0), (0, 0, 0)),
    (Decision(Rule.HISTORY_DELETED, None), (MAX, 0, SEARCH), (0, 0, MAX)),
    (Decision(Rule.FIRST_MESSAGE_COLD, None), (MAX, 0, SEARCH), (0, 0, MAX)),
    (Decision(Rule.NO_FIRST_MESSAGE, None), (MAX, 0, SEARCH), (0, 0, MAX)),
    (Decision(Rule.DEFAULT_FORBIDDEN, None), (MAX, 0, SEARCH), (0, 0, MAX)),
]


@pytest.mark.parametrize(("decision", "normal", "retry"), STARTS)
def test_where_an_official_push_consumer_then_starts(
    decision: Decision, normal: tuple[int | None, ...], retry: tuple[int | None, ...]
) -> None:
    for where, on_normal, on_retry in zip(
        (FROM_LAST, FROM_FIRST, FROM_TIMESTAMP), normal, retry, strict=True
    ):
        assert client_start(decision, where, is_retry_topic=False, max_offset=MAX) == on_normal
        assert client_start(decision, where, is_retry_topic=True, max_offset=MAX) == on_retry


@pytest.mark.parametrize(
    "deprecated",
    [
        "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
        "CONSUME_FROM_MIN_OFFSET",
        "CONSUME_FROM_MAX_OFFSET",
    ],
)
def test_deprecated_values_mean_last(deprecated: str) -> None:
    not_found = Decision(Rule.FIRST_MESSAGE_COLD, None)
    assert client_start(not_found, deprecated, is_retry_topic=False, max_offset=MAX) == MAX


any_facts = st.builds(
    QueueFacts,
    reset_offset=st.none() | st.integers(0, 9),
    stored_offset=st.integers(-1, 9),
    set_zero_if_not_found=st.sampled_from([None, True, False]),
    min_offset=st.integers(0, 9),
    is_first_message_hot=st.sampled_from([None, True, False]),
)


@given(any_facts)
def test_a_default_is_only_ever_zero_and_only_for_a_queue_from_its_start(facts: QueueFacts) -> None:
    for is_5 in (False, True):
        decision = decide(facts, is_5=is_5)
        if decision.rule not in (Rule.RESET_PENDING, Rule.STORED_OFFSET) and decision.offset is not None:
            assert decision.offset == facts.min_offset == 0
