"""Who is online: heartbeats, members of a group, connections, and queue locks.

Most of these carry JSON bodies, named by their official class in each docstring. Not here: the settings of a
group (`group.py`).
"""

from ..bodies.client import (
    CheckClientRequestBody,
    GetConsumerListByGroupResponseBody,
    HeartbeatData,
    LockBatchRequestBody,
    LockBatchResponseBody,
    UnlockBatchRequestBody,
)
from ..bodies.client_state import ConsumerConnection, ProducerConnection, ProducerTableInfo
from ..wire.schema import NoReply, Reply, Request, field, request


class HeartBeatReply(Reply, frozen=True, kw_only=True):
    """What a broker says about heartbeats V2, put into the reply without a header class; a 4.9 broker says nothing.

    `is_sub_change` answers a heartbeat that sent no subscriptions: send them again.
    """

    is_support_heart_beat_v2: bool | None = field(name="IS_SUPPORT_HEART_BEAT_V2", default=None)
    is_sub_change: bool | None = field(name="IS_SUB_CHANGE", default=None)


@request(34, body=HeartbeatData)
class HeartBeat(Request[HeartBeatReply], frozen=True, kw_only=True):
    """A client's groups and subscriptions. `HeartbeatRequestHeader`; body HeartbeatData."""


@request(35)
class UnregisterClient(Request[NoReply], frozen=True, kw_only=True):
    """A client leaves the named groups. `UnregisterClientRequestHeader`."""

    client_id: str | None = field(name="clientID", default=None)
    """Marked mandatory, but it is the connection that leaves."""
    producer_group: str | None = None
    consumer_group: str | None = None


@request(38)
class GetConsumerListByGroup(Request[GetConsumerListByGroupResponseBody], frozen=True, kw_only=True):
    """The client ids of a group. `GetConsumerListByGroupRequestHeader`.

    The reply's body is GetConsumerListByGroupResponseBody; SYSTEM_ERROR where nobody is online.
    """

    consumer_group: str


@request(41, body=LockBatchRequestBody)
class LockBatchMq(Request[LockBatchResponseBody], frozen=True, kw_only=True):
    """Lock queues for ordered consumption. Body LockBatchRequestBody, the reply's LockBatchResponseBody."""


@request(42, body=UnlockBatchRequestBody)
class UnlockBatchMq(Request[NoReply], frozen=True, kw_only=True):
    """Give locks back, often one-way. Body UnlockBatchRequestBody."""


@request(46, body=CheckClientRequestBody)
class CheckClientConfig(Request[NoReply], frozen=True, kw_only=True):
    """Can the broker filter by this subscription? Body CheckClientRequestBody."""


@request(47, only_in=5)
class GetClientConfig(Request[NoReply], frozen=True, kw_only=True):
    """A number nobody uses: official brokers answer REQUEST_CODE_NOT_SUPPORTED."""


@request(203)
class GetConsumerConnectionList(Request[ConsumerConnection], frozen=True, kw_only=True):
    """Connections of a consumer group. `GetConsumerConnectionListRequestHeader`.

    The reply's body is ConsumerConnection; CONSUMER_NOT_ONLINE where there are none.
    """

    consumer_group: str


@request(204)
class GetProducerConnectionList(Request[ProducerConnection], frozen=True, kw_only=True):
    """Connections of a producer group; the reply's body is ProducerConnection.

    `GetProducerConnectionListRequestHeader`.
    """

    producer_group: str


@request(328)
class GetAllProducerInfo(Request[ProducerTableInfo], frozen=True, kw_only=True):
    """Every connected producer; the reply's body is ProducerTableInfo. `GetAllProducerInfoRequestHeader`."""
