"""Reading messages: pull by offset, find single ones by key or position, look into a consume queue.

The reply to a pull holds messages as stored, back to back. The status of a pull is the response code; the remark
repeats it by name. POP is in `pop.py`.
"""

from typing import Final

import msgspec

from ..bodies.body import Records
from ..bodies.offsets import QueryConsumeQueueResponseBody
from ..wire.command import Command
from ..wire.header_form import HeaderForm
from ..wire.schema import Int, Long, Reply, Request, field, request, to_fields


class PullMessageReply(Reply, frozen=True, kw_only=True):
    """Where the next pull starts, and what the queue holds. `PullMessageResponseHeader`.

    Present with codes 0, 19, 20 and 21. `max_offset` is one past the last message. With NO_PERMISSION,
    `forbidden_type` says who forbade the pull: 1 broker, 2 group, 3 topic, 4 broadcasting, 5 subscription.
    """

    suggest_which_broker_id: Long
    next_begin_offset: Long
    min_offset: Long
    max_offset: Long
    offset_delta: Long | None = None
    topic_sys_flag: Int | None = None
    group_sys_flag: Int | None = None
    forbidden_type: Int | None = None


@request(11, reply_body=Records)
class PullMessage(Request[PullMessageReply], frozen=True, kw_only=True):
    """Messages of one queue from `queue_offset` on. `PullMessageRequestHeader`.

    `sys_flag`: 1 commit `commit_offset`, 2 may wait `suspend_timeout_millis`, 4 `subscription` is present, 8 class
    filter, 16 lite pull. `expression_type` is TAG or SQL92; absent means TAG. `lite_topic` reads the light queue of
    that topic. Only a proxy sends `request_source` and the client id it forwards.
    """

    consumer_group: str
    topic: str
    queue_id: Int
    queue_offset: Long
    max_msg_nums: Int
    sys_flag: Int
    commit_offset: Long | None = None
    """The official class marks it mandatory; brokers read it only if `sys_flag` says so."""
    suspend_timeout_millis: Long
    subscription: str | None = None
    sub_version: Long
    expression_type: str | None = None
    max_msg_bytes: Int | None = None
    lite_topic: str | None = None
    request_source: Int | None = None
    proxy_forward_client_id: str | None = field(name="proxyFrowardClientId", default=None)
    broker_name: str | None = field(name="bname", default=None)


@request(361, only_in=5, reply_body=Records)
class LitePullMessage(PullMessage, frozen=True, kw_only=True):
    """The same pull from a lite pull consumer, so that a broker can serve it in threads of its own."""


_OFFSET: Final = -8_765_432_109_876_543_210
_COUNT: Final = -1_987_654_321
_OPAQUE: Final = -1_234_567_891
"""Values of the sample. No name of a topic or group holds them."""


def pull_form(request: PullMessage, language: str, version: int) -> HeaderForm | None:
    """The form of pulls that differ from this one in their (queue offset, number of messages, opaque) only; None if it
    cannot be cut."""
    sample = msgspec.structs.replace(request, queue_offset=_OFFSET, max_msg_nums=_COUNT)
    command = Command(request.code, _OPAQUE, fields=to_fields(sample), language=language, version=version)
    quoted = ((b'"%d"' % mark, b'"%d"') for mark in (_OFFSET, _COUNT))
    return HeaderForm.of(command, (*quoted, (b"%d" % _OPAQUE, b"%d")))


class QueryMessageReply(Reply, frozen=True, kw_only=True):
    """How far the key index has come. `QueryMessageResponseHeader`."""

    index_last_update_timestamp: Long
    index_last_update_position: Long = field(name="indexLastUpdatePhyoffset")


@request(12, reply_body=Records)
class QueryMessage(Request[QueryMessageReply], frozen=True, kw_only=True):
    """Messages of a topic by key, stored between two times (ms); QUERY_NOT_FOUND if there are none.
    `QueryMessageRequestHeader`.

    `unique_key_query` true looks for a unique id, and so does `index_type` U. K means keys and T tags; without both
    it is keys. `last_key` continues a paged answer of an index in RocksDB.
    """

    topic: str
    key: str
    max_num: Int
    begin_timestamp: Long
    end_timestamp: Long
    index_type: str | None = None
    last_key: str | None = None
    unique_key_query: bool | None = field(name="_UNIQUE_KEY_QUERY", default=None)


@request(33)
class ViewMessageById(Request[Records], frozen=True, kw_only=True):
    """The message at a commit-log position. `ViewMessageRequestHeader`."""

    offset: Long
    topic: str | None = None


@request(321)
class QueryConsumeQueue(Request[QueryConsumeQueueResponseBody], frozen=True, kw_only=True):
    """`count` units of a consume queue from `index` on. `QueryConsumeQueueRequestHeader`.

    With a group each unit says whether its subscription matches.
    """

    topic: str | None = None
    queue_id: Int = 0
    index: Long = 0
    count: Int = 0
    consumer_group: str | None = None
