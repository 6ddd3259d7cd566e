"""Lite topics: many small topics inside one, each with a light queue of its own (5.5).

Codes from 200070 on travel with a JSON header only. Acknowledging is `AckMessage` with `lite_topic`.
"""

from ..wire.schema import Int, Long, NoReply, Reply, Request, request


class PopLiteMessageReply(Reply, frozen=True, kw_only=True):
    """What was handed out; `revive_qid` is always 999. `PopLiteMessageResponseHeader`."""

    pop_time: Long
    invisible_time: Long
    revive_qid: Int
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


@request(200070)
class PopLiteMessage(Request[PopLiteMessageReply], frozen=True, kw_only=True):
    """Messages of the lite topics a client subscribed to under `topic`. `PopLiteMessageRequestHeader`.

    Times in ms, `born_time` 0 means now.
    """

    client_id: str
    consumer_group: str
    topic: str
    max_msg_num: Int = 0
    invisible_time: Long = 0
    poll_time: Long = 0
    born_time: Long = 0
    attempt_id: str | None = None


@request(200071)
class LiteSubscriptionCtl(Request[NoReply], frozen=True, kw_only=True):
    """Subscribe to lite topics or leave them.

    `LiteSubscriptionCtlRequestHeader`; body the same name without Header.
    """


@request(200072)
class AckLiteMessage(Request[NoReply], frozen=True, kw_only=True):
    """A number nobody uses: official brokers answer REQUEST_CODE_NOT_SUPPORTED."""


@request(200073)
class NotifyUnsubscribeLite(Request[NoReply], frozen=True, kw_only=True):
    """Broker to client, one-way: you lost this lite topic. `NotifyUnsubscribeLiteRequestHeader`."""

    lite_topic: str
    consumer_group: str
    client_id: str


@request(200074)
class GetBrokerLiteInfo(Request[NoReply], frozen=True, kw_only=True):
    """Lite topics of a broker in figures; the reply's body is GetBrokerLiteInfoResponseBody."""


@request(200075)
class GetParentTopicInfo(Request[NoReply], frozen=True, kw_only=True):
    """A topic that holds lite topics; the reply's body is GetParentTopicInfoResponseBody.

    `GetParentTopicInfoRequestHeader`.
    """

    topic: str


@request(200076)
class GetLiteTopicInfo(Request[NoReply], frozen=True, kw_only=True):
    """One lite topic; the reply's body is GetLiteTopicInfoResponseBody. `GetLiteTopicInfoRequestHeader`."""

    parent_topic: str | None = None
    lite_topic: str | None = None


@request(200077)
class GetLiteClientInfo(Request[NoReply], frozen=True, kw_only=True):
    """One client's lite topics;

    the reply's body is GetLiteClientInfoResponseBody. `GetLiteClientInfoRequestHeader`.
    """

    parent_topic: str | None = None
    group: str | None = None
    client_id: str | None = None
    max_count: Int = 1000


@request(200078)
class GetLiteGroupInfo(Request[NoReply], frozen=True, kw_only=True):
    """A group's lag in lite topics, the `top_k` worst; the reply's body is GetLiteGroupInfoResponseBody.

    `GetLiteGroupInfoRequestHeader`.
    """

    group: str
    lite_topic: str | None = None
    top_k: Int = 0


@request(200079)
class TriggerLiteDispatch(Request[NoReply], frozen=True, kw_only=True):
    """Look again for messages of a group, of one client if named. `TriggerLiteDispatchRequestHeader`."""

    group: str
    client_id: str | None = None
