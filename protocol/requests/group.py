"""Consumer groups as the broker keeps them: settings, permissions, progress.

Settings travel as JSON bodies (SubscriptionGroupConfig). Not here: who is online (`membership.py`).
"""

from ..bodies.group_config import SubscriptionGroupConfig, SubscriptionGroupList, SubscriptionGroupWrapper
from ..bodies.offsets import ConsumeStats, ConsumeStatsList, GroupForbidden, QuerySubscriptionResponseBody
from ..bodies.routes import TopicList
from ..wire.schema import Int, NoReply, Reply, Request, request


@request(200, "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP", body=SubscriptionGroupConfig)
class UpdateAndCreateSubscriptionGroup(Request[NoReply], frozen=True, kw_only=True):
    """Make a group or change it. Body SubscriptionGroupConfig."""


@request(225, "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST", only_in=5, body=SubscriptionGroupList)
class UpdateAndCreateSubscriptionGroupList(Request[NoReply], frozen=True, kw_only=True):
    """Several groups at once. Body SubscriptionGroupList."""


class GetAllSubscriptionGroupConfigReply(Reply, frozen=True, kw_only=True):
    """How many groups there are;

    absent means that everything was sent. `GetAllSubscriptionGroupResponseHeader`.
    """

    total_group_num: Int | None = None


@request(201, "GET_ALL_SUBSCRIPTIONGROUP_CONFIG", reply_body=SubscriptionGroupWrapper)
class GetAllSubscriptionGroupConfig(Request[GetAllSubscriptionGroupConfigReply], frozen=True, kw_only=True):
    """The group table, by pages or whole. `GetAllSubscriptionGroupRequestHeader`.

    Older callers send no field at all and get the whole table. `data_version` is JSON; a different one starts
    over. The reply's body is SubscriptionGroupWrapper.
    """

    group_seq: Int | None = None
    data_version: str | None = None
    max_group_num: Int | None = None


@request(207, "DELETE_SUBSCRIPTIONGROUP")
class DeleteSubscriptionGroup(Request[NoReply], frozen=True, kw_only=True):
    """Remove a group. `DeleteSubscriptionGroupRequestHeader`.

    `clean_offset` (5.x) and `remove_offset` (4.9) ask the same: its offsets too.
    """

    group_name: str
    clean_offset: bool = False
    remove_offset: bool = False


@request(352, "GET_SUBSCRIPTIONGROUP_CONFIG", only_in=5)
class GetSubscriptionGroupConfig(Request[SubscriptionGroupConfig], frozen=True, kw_only=True):
    """One group's settings;

    the reply's body is SubscriptionGroupConfig. `GetSubscriptionGroupConfigRequestHeader`.
    """

    group: str


@request(353, only_in=5)
class UpdateAndGetGroupForbidden(Request[GroupForbidden], frozen=True, kw_only=True):
    """Forbid or allow a group one topic, and say which holds. `UpdateGroupForbiddenRequestHeader`.

    Without `readable` it only asks. The reply's body is GroupForbidden.
    """

    group: str
    topic: str
    readable: bool | None = None


@request(208)
class GetConsumeStats(Request[ConsumeStats], frozen=True, kw_only=True):
    """A group's progress in each queue; the reply's body is ConsumeStats. `GetConsumeStatsRequestHeader`.

    `topic_list` is separated by `;` and wins over `topic`; neither means every topic the group reads.
    """

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None


@request(317)
class GetBrokerConsumeStats(Request[ConsumeStatsList], frozen=True, kw_only=True):
    """Progress of every group; the reply's body is ConsumeStatsList. `GetConsumeStatsInBrokerHeader`.

    `is_order` asks for the ordered consumers alone.
    """

    is_order: bool = False


@request(343, only_in=5)
class QueryTopicsByConsumer(Request[TopicList], frozen=True, kw_only=True):
    """Topics a group has offsets in; the reply's body is TopicList. `QueryTopicsByConsumerRequestHeader`."""

    group: str


@request(345, only_in=5)
class QuerySubscriptionByConsumer(Request[QuerySubscriptionResponseBody], frozen=True, kw_only=True):
    """What a group subscribes to; the reply's body is QuerySubscriptionResponseBody.

    `QuerySubscriptionByConsumerRequestHeader`.
    """

    group: str
    topic: str | None = None
