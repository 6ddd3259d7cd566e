"""Which rule an answer came from, judged from outside: for brokers that do not explain themselves.

An official broker says "offset 0" and no more. What else can be asked of it narrows the rules down:

    the same question with setZeroIfNotFound=false   5.x: an answer means a stored offset, so B0 or B1
    the min and max offset of the queue              tell B3, B5 and B6 apart
    the group's offsets at this broker               4.9: a group without any in the topic has none in this queue

Where two rules would look the same, both are named. `rules.py` has the rules; this file has pure functions only.
"""

import msgspec

from .rules import Rule, reason_of


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a client can learn about one queue. Offsets count messages; `None` as an answer is "not found"."""

    answer: int | None
    """The answer to QUERY_CONSUMER_OFFSET, asked as the Java client asks."""
    answer_without_default: int | None = None
    """The same with setZeroIfNotFound=false; only 5.x brokers read that field."""
    min_offset: int
    max_offset: int
    may_have_stored: bool = True
    """False if the broker has no offset of the group in any queue of the topic."""
    may_be_reset: bool = True
    """False if the broker has no server-side reset of offsets (useServerSideResetOffset)."""


def possible_rules(seen: Seen, *, is_5: bool) -> tuple[Rule, ...]:
    """The rules that can have given this answer: one, or the two between which nothing decides."""
    if seen.answer is None:
        return (_not_found(seen, is_5=is_5),)
    by_default = Rule.FIRST_MESSAGE_HOT if seen.max_offset > 0 else Rule.NO_FIRST_MESSAGE
    if is_5:
        if seen.answer_without_default is None:
            return (by_default,)
        return (Rule.RESET_PENDING, Rule.STORED_OFFSET) if seen.may_be_reset else (Rule.STORED_OFFSET,)
    if seen.answer > 0 or seen.min_offset > 0:
        return (Rule.STORED_OFFSET,)
    return (Rule.STORED_OFFSET, by_default) if seen.may_have_stored else (by_default,)


def _not_found(seen: Seen, *, is_5: bool) -> Rule:
    if seen.min_offset > 0:
        return Rule.HISTORY_DELETED
    # The 4.9 line answers 0 for a queue without a first message.
    return Rule.NO_FIRST_MESSAGE if is_5 and seen.max_offset == 0 else Rule.FIRST_MESSAGE_COLD


def reason(rules: tuple[Rule, ...], seen: Seen) -> str:
    """The rules in words, with the numbers that were seen."""
    text = ", or ".join(reason_of(rule, offset=seen.answer, min_offset=seen.min_offset) for rule in rules)
    return text if len(rules) == 1 else f"{text}: from outside both look the same"
