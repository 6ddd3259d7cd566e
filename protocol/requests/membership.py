"""Connected clients: heartbeats, members of a group, connections, queue locks.

The settings of a group are in `group.py`.
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
    """What a broker says about heartbeats V2. The fields have no header class, and 4.9 has none of them.

    `is_sub_change` answers a heartbeat without subscriptions: the client must send them again.
    """

    is_support_heart_beat_v2: bool | None = field(name="IS_SUPPORT_HEART_BEAT_V2", default=None)
    is_sub_change: bool | None = field(name="IS_SUB_CHANGE", default=None)


@request(34, body=HeartbeatData)
class HeartBeat(Request[HeartBeatReply], frozen=True, kw_only=True):
    """The groups and subscriptions of a client. `HeartbeatRequestHeader`."""


@request(35)
class UnregisterClient(Request[NoReply], frozen=True, kw_only=True):
    """A client leaves the named groups. `UnregisterClientRequestHeader`."""

    client_id: str | None = field(name="clientID", default=None)
    """The official class marks it mandatory; brokers go by the connection."""
    producer_group: str | None = None
    consumer_group: str | None = None


@request(38)
class GetConsumerListByGroup(Request[GetConsumerListByGroupResponseBody], frozen=True, kw_only=True):
    """The client ids of a group; SYSTEM_ERROR if no member is connected. `GetConsumerListByGroupRequestHeader`."""

    consumer_group: str


@request(41, body=LockBatchRequestBody)
class LockBatchMq(Request[LockBatchResponseBody], frozen=True, kw_only=True):
    """Lock queues for ordered consumption; the reply names those that the client holds."""


@request(42, body=UnlockBatchRequestBody)
class UnlockBatchMq(Request[NoReply], frozen=True, kw_only=True):
    """Release locks, often one-way."""


@request(46, body=CheckClientRequestBody)
class CheckClientConfig(Request[NoReply], frozen=True, kw_only=True):
    """Can the broker filter by this subscription?"""


@request(203)
class GetConsumerConnectionList(Request[ConsumerConnection], frozen=True, kw_only=True):
    """Connections of a consumer group; CONSUMER_NOT_ONLINE if there are none.
    `GetConsumerConnectionListRequestHeader`.
    """

    consumer_group: str


@request(204)
class GetProducerConnectionList(Request[ProducerConnection], frozen=True, kw_only=True):
    """Connections of a producer group. `GetProducerConnectionListRequestHeader`."""

    producer_group: str


@request(328)
class GetAllProducerInfo(Request[ProducerTableInfo], frozen=True, kw_only=True):
    """All connected producers. `GetAllProducerInfoRequestHeader`."""
