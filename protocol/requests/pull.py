"""Pulling from a queue by offset.

Messages arrive as the reply's body in the stored layout, back to back; the pull status travels in the response
code and, by name, in the remark. Not here: POP (`pop.py`).
"""

from ..wire.schema import Int, Long, Reply, Request, field, request


class PullMessageReply(Reply, frozen=True, kw_only=True):
    """Where the next pull starts and what the queue holds. `PullMessageResponseHeader`.

    Present with codes 0, 19, 20 and 21. `max_offset` is one past the last message. `forbidden_type` says with
    NO_PERMISSION who forbade it: 1 broker, 2 group, 3 topic, 4 broadcasting, 5 subscription.
    """

    suggest_which_broker_id: Long
    next_begin_offset: Long
    min_offset: Long
    max_offset: Long
    offset_delta: Long | None = None
    topic_sys_flag: Int | None = None
    group_sys_flag: Int | None = None
    forbidden_type: Int | None = None


@request(11)
class PullMessage(Request[PullMessageReply], frozen=True, kw_only=True):
    """Messages of one queue from `queue_offset` on, waiting for them if asked. `PullMessageRequestHeader`.

    `sys_flag`: 1 commit `commit_offset`, 2 may wait `suspend_timeout_millis`, 4 `subscription` is given, 8 class
    filter, 16 lite pull. `expression_type` is TAG or SQL92, absent means TAG. `lite_topic` makes it a read of
    that topic's light queue. `request_source` and the proxy's client id come from a proxy alone.
    """

    consumer_group: str
    topic: str
    queue_id: Int
    queue_offset: Long
    max_msg_nums: Int
    sys_flag: Int
    commit_offset: Long | None = None
    """Marked mandatory, but looked at only where `sys_flag` says so."""
    suspend_timeout_millis: Long
    subscription: str | None = None
    sub_version: Long
    expression_type: str | None = None
    max_msg_bytes: Int | None = None
    lite_topic: str | None = None
    request_source: Int | None = None
    proxy_forward_client_id: str | None = field(name="proxyFrowardClientId", default=None)
    broker_name: str | None = field(name="bname", default=None)


@request(361)
class LitePullMessage(PullMessage, frozen=True, kw_only=True):
    """The same pull from a lite pull consumer, so that a broker can give it its own threads."""
