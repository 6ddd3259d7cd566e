"""Whatever a broker decides, the rules named from outside include the one that it used; and mostly no other."""

from hypothesis import given
from hypothesis import strategies as st
from pocketmq.broker.first_position.from_outside import Seen, possible_rules, reason
from pocketmq.broker.first_position.rules import QueueFacts, Rule, decide


@st.composite
def queues(draw: st.DrawFn) -> tuple[QueueFacts, int]:
    """The facts of a queue, and its max offset."""
    max_offset = draw(st.integers(0, 5))
    min_offset = draw(st.integers(0, max_offset))
    has_first = min_offset == 0 and max_offset > 0
    return (
        QueueFacts(
            reset_offset=draw(st.none() | st.integers(0, 6)),
            stored_offset=draw(st.integers(-1, 6)),
            min_offset=min_offset,
            is_first_message_hot=draw(st.booleans()) if has_first else None,
        ),
        max_offset,
    )


def seen_of(facts: QueueFacts, max_offset: int, *, is_5: bool) -> Seen:
    """What a client sees of a broker with these facts that decides by `rules.py`."""
    without_default = QueueFacts(
        reset_offset=facts.reset_offset,
        stored_offset=facts.stored_offset,
        set_zero_if_not_found=False,
        min_offset=facts.min_offset,
        is_first_message_hot=facts.is_first_message_hot,
    )
    return Seen(
        answer=decide(facts, is_5=is_5).offset,
        answer_without_default=decide(without_default, is_5=True).offset if is_5 else None,
        min_offset=facts.min_offset,
        max_offset=max_offset,
        may_have_stored=facts.stored_offset >= 0,
        may_be_reset=is_5 and facts.reset_offset is not None,
    )


@given(queues(), st.booleans())
def test_the_rule_that_decided_is_always_named(queue: tuple[QueueFacts, int], is_5: bool) -> None:
    facts, max_offset = queue
    seen = seen_of(facts, max_offset, is_5=is_5)
    rules = possible_rules(seen, is_5=is_5)
    assert decide(facts, is_5=is_5).rule in rules
    assert reason(rules, seen)


@given(queues())
def test_of_the_5_line_only_a_reset_and_a_stored_offset_look_the_same(queue: tuple[QueueFacts, int]) -> None:
    facts, max_offset = queue
    rules = possible_rules(seen_of(facts, max_offset, is_5=True), is_5=True)
    assert len(rules) == 1 or rules == (Rule.RESET_PENDING, Rule.STORED_OFFSET)


def test_a_4_9_broker_with_offsets_of_the_group_in_the_topic_leaves_two_rules() -> None:
    seen = Seen(answer=0, min_offset=0, max_offset=3)
    rules = possible_rules(seen, is_5=False)
    assert rules == (Rule.STORED_OFFSET, Rule.FIRST_MESSAGE_HOT)
    assert "both look the same" in reason(rules, seen)


def test_a_4_9_broker_without_any_leaves_one() -> None:
    seen = Seen(answer=0, min_offset=0, max_offset=3, may_have_stored=False)
    assert possible_rules(seen, is_5=False) == (Rule.FIRST_MESSAGE_HOT,)
