"""Requests that a broker sends to a client, on the connection that the client opened.

A tool sends 307 and 309 to the broker, which passes them on to the named client. The transaction check is in
`send.py`.
"""

from ..bodies.body import MessageContent, Records
from ..bodies.client_state import ConsumeMessageDirectlyResult, ConsumerRunningInfo, GetConsumerStatusBody
from ..bodies.offsets import ResetOffsetBody, ResetOffsetBodyForC
from ..wire.schema import Int, Long, NoReply, Request, request


@request(40)
class NotifyConsumerIdsChanged(Request[NoReply], frozen=True, kw_only=True):
    """One-way: the members of a group changed; the client rebalances. `NotifyConsumerIdsChangedRequestHeader`."""

    consumer_group: str


@request(220, body=ResetOffsetBody, body_variants={"to C++ clients": ResetOffsetBodyForC})
class ResetConsumerClientOffset(Request[NoReply], frozen=True, kw_only=True):
    """One-way: continue at the offsets in the body. `ResetOffsetRequestHeader`."""

    topic: str
    group: str
    timestamp: Long = 0
    is_force: bool = False
    queue_id: Int = -1
    offset: Long | None = None


@request(221)
class GetConsumerStatusFromClient(Request[GetConsumerStatusBody], frozen=True, kw_only=True):
    """Which offsets does the client hold? `GetConsumerStatusRequestHeader`."""

    topic: str
    group: str
    client_addr: str | None = None


@request(307)
class GetConsumerRunningInfo(Request[ConsumerRunningInfo], frozen=True, kw_only=True):
    """The inner state of a consumer. `GetConsumerRunningInfoRequestHeader`."""

    consumer_group: str
    client_id: str
    jstack_enable: bool = False


@request(309, body=Records)
class ConsumeMessageDirectly(Request[ConsumeMessageDirectlyResult], frozen=True, kw_only=True):
    """Let a consumer process one message now. `ConsumeMessageDirectlyResultRequestHeader`.

    To the broker, `msg_id` names it by its offset message id and there is no body. To the client, the body is the
    message as stored.
    """

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    broker_name: str | None = None
    topic: str | None = None
    topic_sys_flag: Int | None = None
    group_sys_flag: Int | None = None


@request(326, body=MessageContent)
class PushReplyMessageToClient(Request[NoReply], frozen=True, kw_only=True):
    """The answer to a requester's message. `ReplyMessageRequestHeader`.

    The fields of a send, and the origin of the answer: hosts as `ip:port`, times in ms.
    """

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int
    queue_id: Int
    sys_flag: Int
    born_timestamp: Long
    flag: Int
    properties: str | None = None
    reconsume_times: Int | None = None
    unit_mode: bool = False
    born_host: str
    store_host: str
    store_timestamp: Long = 0
