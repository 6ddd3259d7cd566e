"""Offsets: what a queue holds, how far a group has consumed, moving it, and EXPLAIN_FIRST_POSITION.

Queue offsets count messages from 0; the max offset is one past the last message. Times are ms since the epoch. The
reset that a broker sends to clients is in `to_client.py`.

EXPLAIN_FIRST_POSITION is PocketMQ's own request. Its number is far from the official ones and fits both header forms;
an official broker answers REQUEST_CODE_NOT_SUPPORTED.
"""

import msgspec

from ..bodies.client_state import GetConsumerStatusBody
from ..bodies.offsets import QueryCorrectionOffsetBody, ResetOffsetBody, ResetOffsetBodyForC
from ..wire.schema import Int, Long, NoReply, Reply, Request, field, request


class OffsetReply(Reply, frozen=True, kw_only=True):
    """One queue offset. `QueryConsumerOffset-`, `SearchOffset-`, `GetMax-` and `GetMinOffsetResponseHeader`."""

    offset: Long


@request(14)
class QueryConsumerOffset(Request[OffsetReply], frozen=True, kw_only=True):
    """The committed offset of a group; QUERY_NOT_FOUND if it has none. `QueryConsumerOffsetRequestHeader`.

    If `set_zero_if_not_found` is false, the broker does not answer 0 for a queue whose first messages are still in
    memory.
    """

    consumer_group: str
    topic: str
    queue_id: Int
    set_zero_if_not_found: bool | None = None
    broker_name: str | None = field(name="bname", default=None)


@request(15)
class UpdateConsumerOffset(Request[NoReply], frozen=True, kw_only=True):
    """Commit a group's offset; usually one-way. `UpdateConsumerOffsetRequestHeader`."""

    consumer_group: str
    topic: str
    queue_id: Int
    commit_offset: Long
    broker_name: str | None = field(name="bname", default=None)


@request(29)
class SearchOffsetByTimestamp(Request[OffsetReply], frozen=True, kw_only=True):
    """The offset at a store time. `SearchOffsetRequestHeader`.

    `boundary_type` UPPER, in any case, means the upper boundary; any other text the lower one. `lite_topic`
    searches a light queue.
    """

    topic: str
    queue_id: Int
    timestamp: Long
    boundary_type: str | None = None
    lite_topic: str | None = None
    broker_name: str | None = field(name="bname", default=None)


@request(30)
class GetMaxOffset(Request[OffsetReply], frozen=True, kw_only=True):
    """One past the last message of a queue. `GetMaxOffsetRequestHeader`. Brokers ignore `committed`."""

    topic: str
    queue_id: Int
    committed: bool = True
    broker_name: str | None = field(name="bname", default=None)


@request(31)
class GetMinOffset(Request[OffsetReply], frozen=True, kw_only=True):
    """The oldest message that a queue still holds. `GetMinOffsetRequestHeader`."""

    topic: str
    queue_id: Int
    broker_name: str | None = field(name="bname", default=None)


class GetEarliestMsgStoreTimeReply(Reply, frozen=True, kw_only=True):
    """Store time in ms, -1 for an empty queue. `GetEarliestMsgStoretimeResponseHeader`."""

    timestamp: Long


@request(32, "GET_EARLIEST_MSG_STORETIME")
class GetEarliestMsgStoreTime(Request[GetEarliestMsgStoreTimeReply], frozen=True, kw_only=True):
    """When the oldest message of a queue was stored. `GetEarliestMsgStoretimeRequestHeader`."""

    topic: str
    queue_id: Int
    broker_name: str | None = field(name="bname", default=None)


@request(222, reply_body_variants={"to C++ clients": ResetOffsetBodyForC})
class InvokeBrokerToResetOffset(Request[ResetOffsetBody | None], frozen=True, kw_only=True):
    """Move a group to a time or an offset. `ResetOffsetRequestHeader`.

    `timestamp` -1 means the end. `queue_id` -1 means every queue; an `offset` other than -1 wins over the time.
    Without `is_force` an old broker moves backwards only.
    """

    topic: str
    group: str
    timestamp: Long = 0
    is_force: bool = False
    queue_id: Int = -1
    offset: Long | None = None


@request(223)
class InvokeBrokerToGetConsumerStatus(Request[GetConsumerStatusBody], frozen=True, kw_only=True):
    """The offsets that the members of a group hold; the broker asks them. `GetConsumerStatusRequestHeader`.

    `client_addr` is a client id; absent means all members.
    """

    topic: str
    group: str
    client_addr: str | None = None


@request(308)
class QueryCorrectionOffset(Request[QueryCorrectionOffsetBody], frozen=True, kw_only=True):
    """Offsets of a group, corrected by those of others. `QueryCorrectionOffsetHeader`.

    `filter_groups` is separated by commas.
    """

    filter_groups: str | None = None
    compare_group: str
    topic: str


@request(314)
class CloneGroupOffset(Request[NoReply], frozen=True, kw_only=True):
    """Copy the offsets of one group to another. `CloneGroupOffsetRequestHeader`; no `topic` means all topics."""

    src_group: str
    dest_group: str
    topic: str | None = None
    offline: bool = False


class Verdict(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer for one group, topic and queue. Offsets count messages; positions and budgets are bytes."""

    group: str
    topic: str
    queue_id: int
    rule: str
    """`B0` to `B6`, see `broker/first_position/rules.py`; of a broker that does not explain itself also `B1 or B4`."""
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
    broker_name: str = ""
    """The broker whose queue it is; a broker that answers for itself leaves it out."""


@request(30001)
class ExplainFirstPosition(Request[list[Verdict]], frozen=True, kw_only=True):
    """Where the group will start reading each queue of the topic, and why."""

    consumer_group: str
    topic: str


def encode_verdicts(verdicts: list[Verdict]) -> bytes:
    return msgspec.json.encode(verdicts)
