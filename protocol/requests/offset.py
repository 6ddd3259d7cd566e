"""Offsets: what a queue holds, where a group stands, and moving it.

Queue offsets count messages from 0; the maximum is one past the last. Times are ms since the epoch.
Not here: the reset pushed to clients (`to_client.py`).
"""

from ..wire.schema import Int, Long, NoReply, Reply, Request, field, request


class OffsetReply(Reply, frozen=True, kw_only=True):
    """One queue offset. `QueryConsumerOffset-`, `SearchOffset-`, `GetMax-` and `GetMinOffsetResponseHeader`."""

    offset: Long


@request(13)
class QueryBrokerOffset(Request[NoReply], frozen=True, kw_only=True):
    """A number nobody uses: official brokers answer REQUEST_CODE_NOT_SUPPORTED."""


@request(14)
class QueryConsumerOffset(Request[OffsetReply], frozen=True, kw_only=True):
    """The committed offset of a group. `QueryConsumerOffsetRequestHeader`.

    QUERY_NOT_FOUND where there is none. `set_zero_if_not_found` false keeps a broker from answering 0 for a
    queue whose first messages are still in memory.
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

    `boundary_type` is UPPER in any case, anything else means LOWER. `lite_topic` looks into a light queue.
    """

    topic: str
    queue_id: Int
    timestamp: Long
    boundary_type: str | None = None
    lite_topic: str | None = None
    broker_name: str | None = field(name="bname", default=None)


@request(30)
class GetMaxOffset(Request[OffsetReply], frozen=True, kw_only=True):
    """One past the last message of a queue. `GetMaxOffsetRequestHeader`; brokers do not look at `committed`."""

    topic: str
    queue_id: Int
    committed: bool = True
    broker_name: str | None = field(name="bname", default=None)


@request(31)
class GetMinOffset(Request[OffsetReply], frozen=True, kw_only=True):
    """The oldest message still held by a queue. `GetMinOffsetRequestHeader`."""

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


@request(211)
class ResetConsumerOffsetInConsumer(Request[NoReply], frozen=True, kw_only=True):
    """A number nobody uses: official brokers answer REQUEST_CODE_NOT_SUPPORTED."""


@request(212)
class ResetConsumerOffsetInBroker(Request[NoReply], frozen=True, kw_only=True):
    """A number nobody uses: official brokers answer REQUEST_CODE_NOT_SUPPORTED."""


@request(222)
class InvokeBrokerToResetOffset(Request[NoReply], frozen=True, kw_only=True):
    """Move a group to a time or an offset. `ResetOffsetRequestHeader`; the reply's body is ResetOffsetBody.

    `timestamp` -1 means the end. `queue_id` -1 means every queue; `offset`, given and not -1, wins over the
    time. Without `is_force` an old broker moves backwards only.
    """

    topic: str
    group: str
    timestamp: Long = 0
    is_force: bool = False
    queue_id: Int = -1
    offset: Long | None = None


@request(223)
class InvokeBrokerToGetConsumerStatus(Request[NoReply], frozen=True, kw_only=True):
    """The offsets the members of a group hold, asked from them. `GetConsumerStatusRequestHeader`.

    `client_addr` is a client id, absent for all. The reply's body is GetConsumerStatusBody.
    """

    topic: str
    group: str
    client_addr: str | None = None


@request(308)
class QueryCorrectionOffset(Request[NoReply], frozen=True, kw_only=True):
    """Offsets of a group corrected by those of others. `QueryCorrectionOffsetHeader`.

    `filter_groups` is a comma list. The reply's body is QueryCorrectionOffsetBody.
    """

    filter_groups: str | None = None
    compare_group: str
    topic: str


@request(314)
class CloneGroupOffset(Request[NoReply], frozen=True, kw_only=True):
    """Let one group stand where another stands. `CloneGroupOffsetRequestHeader`; no `topic` means all of them."""

    src_group: str
    dest_group: str
    topic: str | None = None
    offline: bool = False
