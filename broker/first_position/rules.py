"""The rules that decide where a consumer group starts reading a queue.

A client sends QUERY_CONSUMER_OFFSET (14). If the answer has an offset, the client starts there. If the answer is "not
found", the client's ConsumeFromWhere decides. The broker tries the rules B0 to B6 in their order (B7, of our own, after
B2); the first match wins.

B4 is the reason why a group with CONSUME_FROM_LAST_OFFSET reads a young topic from its start. Mirrors
`ConsumerManageProcessor.queryConsumerOffset` and `RebalancePushImpl.computePullFromWhere`. Pure functions: `verdict.py`
collects the facts and explains the decision.
"""

import enum
from typing import Final

import msgspec


class Rule(enum.Enum):
    """The official rules in the order in which they are tried, then our own."""

    RESET_PENDING = "B0"
    STORED_OFFSET = "B1"
    DEFAULT_FORBIDDEN = "B2"
    HISTORY_DELETED = "B3"
    FIRST_MESSAGE_HOT = "B4"
    FIRST_MESSAGE_COLD = "B5"
    NO_FIRST_MESSAGE = "B6"
    START_IS_SET = "B7"
    """Tried after B2."""


class QueueFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The input of the rules. Offsets count messages; -1 or `None` means "none"."""

    reset_offset: int | None = None
    stored_offset: int = -1
    set_zero_if_not_found: bool | None = None
    min_offset: int = 0
    max_offset: int = 0
    new_groups_start_at: str = "official"
    """`first` and `last` decide for a group without an offset."""
    is_first_message_hot: bool | None = None
    """`None` if the queue has no unit 0."""


class Decision(msgspec.Struct, frozen=True):
    """The rule that matched and the offset to answer; `None` means QUERY_NOT_FOUND."""

    rule: Rule
    offset: int | None


def decide(facts: QueueFacts, *, is_5: bool) -> Decision:
    """The broker's answer to QUERY_CONSUMER_OFFSET (14)."""
    if is_5 and facts.reset_offset is not None:
        return Decision(Rule.RESET_PENDING, facts.reset_offset)
    if facts.stored_offset >= 0:
        return Decision(Rule.STORED_OFFSET, facts.stored_offset)
    if is_5 and facts.set_zero_if_not_found is False:
        return Decision(Rule.DEFAULT_FORBIDDEN, None)
    if facts.new_groups_start_at != "official":
        at_first = facts.new_groups_start_at == "first"
        return Decision(Rule.START_IS_SET, facts.min_offset if at_first else facts.max_offset)
    if facts.min_offset > 0:
        return Decision(Rule.HISTORY_DELETED, None)
    if facts.is_first_message_hot is None:
        return Decision(Rule.NO_FIRST_MESSAGE, 0 if not is_5 else None)
    if facts.is_first_message_hot:
        return Decision(Rule.FIRST_MESSAGE_HOT, 0)
    return Decision(Rule.FIRST_MESSAGE_COLD, None)


_REASONS: Final = {
    Rule.RESET_PENDING: "an administrator's reset to {offset} waits for the next pull",
    Rule.STORED_OFFSET: "the group has a stored offset, {offset}: it always wins",
    Rule.DEFAULT_FORBIDDEN: "no stored offset, and the request forbids a default",
    Rule.HISTORY_DELETED: "no stored offset, and min offset {min_offset} > 0: the queue is not young",
    Rule.FIRST_MESSAGE_HOT: "no stored offset, min offset 0, first message still in memory{heat}: read all",
    Rule.FIRST_MESSAGE_COLD: "no stored offset, min offset 0, but the first message is cold{heat}",
    Rule.NO_FIRST_MESSAGE: "no stored offset, and the queue has no first message",
    Rule.START_IS_SET: "no stored offset, and newGroupsStartAt says where new groups start: at {offset}",
}


def reason_of(rule: Rule, *, offset: int | None, min_offset: int, heat: str = "") -> str:
    """Why a rule gave this offset, in words; `heat` says why the first message is hot or cold."""
    return _REASONS[rule].format(offset=offset, min_offset=min_offset, heat=heat)


FROM_LAST: Final = "CONSUME_FROM_LAST_OFFSET"
FROM_FIRST: Final = "CONSUME_FROM_FIRST_OFFSET"
FROM_TIMESTAMP: Final = "CONSUME_FROM_TIMESTAMP"


def client_start(
    decision: Decision, consume_from_where: str, *, is_retry_topic: bool, max_offset: int
) -> int | None:
    """Where an official push consumer starts after this answer; `None` if it searches by consumeTimestamp.

    The three deprecated values of ConsumeFromWhere behave like LAST. If the result is below the min offset, the first
    pull corrects it to the min offset.
    """
    if decision.offset is not None:
        return decision.offset
    if consume_from_where == FROM_FIRST:
        return 0
    if consume_from_where == FROM_TIMESTAMP:
        return max_offset if is_retry_topic else None
    return 0 if is_retry_topic else max_offset
