"""Where a client starts by the answer that it gets, as a table.

What the broker answers is in `tests/conformance/first_position`, row by row, and beside the official brokers.
"""

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
