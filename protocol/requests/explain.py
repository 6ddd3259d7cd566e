"""Our one request of our own: ask the broker where a group will start reading a topic, and why.

Not part of the official protocol; the number stays clear of its codes and fits both header forms. An official broker
answers it with REQUEST_CODE_NOT_SUPPORTED.
"""

from typing import Any

import msgspec

from ..wire.schema import NoReply, Request, request


@request(30001)
class ExplainFirstPosition(Request[NoReply], frozen=True, kw_only=True):
    """The reply body is JSON: a list of `Verdict`, one for each queue of the topic."""

    consumer_group: str
    topic: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer for one group, topic and queue. Offsets count messages; positions and budgets are bytes."""

    group: str
    topic: str
    queue_id: int
    rule: str
    """`B0` to `B6`, see `broker/first_position/rules.py`."""
    because: str
    """The rule in words, with its numbers."""
    offset: int | None
    """What QUERY_CONSUMER_OFFSET answers; `None` for QUERY_NOT_FOUND."""
    from_last: int | None
    """First offset read under CONSUME_FROM_LAST_OFFSET, and under the two others below."""
    from_first: int | None
    from_timestamp: int | None
    """`None`: the client searches by its consumeTimestamp."""
    min_offset: int
    max_offset: int
    stored_offset: int
    reset_offset: int | None = None
    is_first_message_hot: bool | None = None
    residency: str = ""
    """The policy that judged: distance, resident or always-hot."""
    first_position_bytes: int | None = None
    """Commit-log position of the queue's first message."""
    log_end_bytes: int = 0
    memory_budget_bytes: int = 0


def encode_verdicts(verdicts: list[Verdict]) -> bytes:
    return msgspec.json.encode(verdicts)


def decode_verdicts(body: Any) -> list[Verdict]:
    return msgspec.json.decode(body, type=list[Verdict])
