"""Finding single messages: by key, by position, and a look into a consume queue."""

from ..wire.schema import Int, Long, NoReply, Reply, Request, field, request


class QueryMessageReply(Reply, frozen=True, kw_only=True):
    """How far the key index has come. `QueryMessageResponseHeader`; the body holds messages as stored."""

    index_last_update_timestamp: Long
    index_last_update_position: Long = field(name="indexLastUpdatePhyoffset")


@request(12)
class QueryMessage(Request[QueryMessageReply], frozen=True, kw_only=True):
    """Messages of a topic by key, stored between two times (ms). `QueryMessageRequestHeader`.

    `unique_key_query` true looks for a unique id; so does `index_type` U. K means keys, T tags; neither means
    keys. `last_key` continues a paged answer of an index in RocksDB. QUERY_NOT_FOUND where there is nothing.
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
class ViewMessageById(Request[NoReply], frozen=True, kw_only=True):
    """The message at a commit-log position; the reply's body is the record. `ViewMessageRequestHeader`."""

    offset: Long
    topic: str | None = None


@request(321)
class QueryConsumeQueue(Request[NoReply], frozen=True, kw_only=True):
    """`count` entries of a consume queue from `index` on. `QueryConsumeQueueRequestHeader`.

    With a group each entry says whether its subscription lets it pass. The reply's body is
    QueryConsumeQueueResponseBody.
    """

    topic: str | None = None
    queue_id: Int = 0
    index: Long = 0
    count: Int = 0
    consumer_group: str | None = None
