"""Topics as the broker stores them: settings, contents, clean-up.

Topics as the name server knows them are in `name_server.py`.
"""

from ..bodies.offsets import GroupList, QueryConsumeTimeSpanBody, TopicStatsTable
from ..bodies.registration import TopicConfigAndMappingSerializeWrapper, TopicConfigAndQueueMapping
from ..bodies.routes import TopicList
from ..bodies.topic_config import CreateTopicListRequestBody, TopicConfigSerializeWrapper
from ..wire.schema import Int, NoReply, Reply, Request, field, request


@request(17)
class UpdateAndCreateTopic(Request[NoReply], frozen=True, kw_only=True):
    """Create or change a topic. `CreateTopicRequestHeader`.

    `perm`: 4 read, 2 write, 1 inherit. `topic_filter_type` is SINGLE_TAG or MULTI_TAG. `attributes` is
    `+key=value,-key`.
    """

    topic: str
    default_topic: str
    read_queue_nums: Int
    write_queue_nums: Int
    perm: Int
    topic_filter_type: str
    topic_sys_flag: Int | None = None
    order: bool = False
    attributes: str | None = None
    force: bool = False


@request(18, only_in=5, body=CreateTopicListRequestBody)
class UpdateAndCreateTopicList(Request[NoReply], frozen=True, kw_only=True):
    """Create or change several topics. `CreateTopicListRequestHeader`."""


@request(215)
class DeleteTopicInBroker(Request[NoReply], frozen=True, kw_only=True):
    """Delete a topic at this broker. `DeleteTopicRequestHeader`."""

    topic: str


class GetAllTopicConfigReply(Reply, frozen=True, kw_only=True):
    """The number of topics. Absent: the reply has all of them. `GetAllTopicConfigResponseHeader`."""

    total_topic_num: Int | None = None


@request(
    21,
    reply_body=TopicConfigAndMappingSerializeWrapper,
    reply_body_variants={"4.9": TopicConfigSerializeWrapper},
)
class GetAllTopicConfig(Request[GetAllTopicConfigReply], frozen=True, kw_only=True):
    """The topic table, in pages or whole. `GetAllTopicConfigRequestHeader`.

    Older callers send no field and get the whole table. `data_version` is JSON; if it is not the broker's, the
    pages start again.
    """

    topic_seq: Int | None = None
    data_version: str | None = None
    max_topic_num: Int | None = None


@request(351, only_in=5)
class GetTopicConfig(Request[TopicConfigAndQueueMapping], frozen=True, kw_only=True):
    """The settings of one topic. `GetTopicConfigRequestHeader`.

    With `logical` the reply has the mapping of a static topic, too.
    """

    topic: str
    logical: bool | None = field(name="lo", default=None)


@request(202)
class GetTopicStatsInfo(Request[TopicStatsTable], frozen=True, kw_only=True):
    """Offsets and last store times of a topic's queues. `GetTopicStatsInfoRequestHeader`."""

    topic: str


@request(300)
class QueryTopicConsumeByWho(Request[GroupList], frozen=True, kw_only=True):
    """Groups that read a topic. `QueryTopicConsumeByWhoRequestHeader`."""

    topic: str


@request(303)
class QueryConsumeTimeSpan(Request[QueryConsumeTimeSpanBody], frozen=True, kw_only=True):
    """Store times of the oldest, newest and last consumed message a queue. `QueryConsumeTimeSpanRequestHeader`."""

    topic: str
    group: str


@request(305)
class GetSystemTopicListFromBroker(Request[TopicList], frozen=True, kw_only=True):
    """Topics that the broker created for itself."""


@request(306, "CLEAN_EXPIRED_CONSUMEQUEUE")
class CleanExpiredConsumeQueue(Request[NoReply], frozen=True, kw_only=True):
    """Delete queue files that point before the start of the log."""


@request(316)
class CleanUnusedTopic(Request[NoReply], frozen=True, kw_only=True):
    """Delete queue files of topics that no longer exist."""


@request(329, "DELETE_EXPIRED_COMMITLOG")
class DeleteExpiredCommitLog(Request[NoReply], frozen=True, kw_only=True):
    """Delete expired commit-log files now."""
