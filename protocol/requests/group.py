"""Consumer groups as the broker stores them: settings, permissions, progress.

Connected members of a group are in `membership.py`.
"""

from ..bodies.group_config import SubscriptionGroupConfig, SubscriptionGroupList, SubscriptionGroupWrapper
from ..bodies.offsets import ConsumeStats, ConsumeStatsList, GroupForbidden, QuerySubscriptionResponseBody
from ..bodies.routes import TopicList
from ..wire.schema import Int, NoReply, Reply, Request, request


@request(200, "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP", body=SubscriptionGroupConfig)
class UpdateAndCreateSubscriptionGroup(Request[NoReply], frozen=True, kw_only=True):
    """Create or change a group."""


@request(225, "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST", only_in=5, body=SubscriptionGroupList)
class UpdateAndCreateSubscriptionGroupList(Request[NoReply], frozen=True, kw_only=True):
    """Create or change several groups."""


class GetAllSubscriptionGroupConfigReply(Reply, frozen=True, kw_only=True):
    """The number of groups. Absent: the reply has all of them. `GetAllSubscriptionGroupResponseHeader`."""

    total_group_num: Int | None = None


@request(201, "GET_ALL_SUBSCRIPTIONGROUP_CONFIG", reply_body=SubscriptionGroupWrapper)
class GetAllSubscriptionGroupConfig(Request[GetAllSubscriptionGroupConfigReply], frozen=True, kw_only=True):
    """The group table, in pages or whole. `GetAllSubscriptionGroupRequestHeader`.

    Older callers send no field and get the whole table. `data_version` is JSON; if it is not the broker's, the
    pages start again.
    """

    group_seq: Int | None = None
    data_version: str | None = None
    max_group_num: Int | None = None


@request(207, "DELETE_SUBSCRIPTIONGROUP")
class DeleteSubscriptionGroup(Request[NoReply], frozen=True, kw_only=True):
    """Delete a group. `DeleteSubscriptionGroupRequestHeader`.

    `clean_offset` (5.x) and `remove_offset` (4.9) mean the same: delete its offsets, too.
    """

    group_name: str
    clean_offset: bool = False
    remove_offset: bool = False


@request(352, "GET_SUBSCRIPTIONGROUP_CONFIG", only_in=5)
class GetSubscriptionGroupConfig(Request[SubscriptionGroupConfig], frozen=True, kw_only=True):
    """The settings of one group. `GetSubscriptionGroupConfigRequestHeader`."""

    group: str


@request(353, only_in=5)
class UpdateAndGetGroupForbidden(Request[GroupForbidden], frozen=True, kw_only=True):
    """Forbid or allow a topic to a group; the reply says which is in force. `UpdateGroupForbiddenRequestHeader`.

    Without `readable` nothing changes.
    """

    group: str
    topic: str
    readable: bool | None = None


@request(208)
class GetConsumeStats(Request[ConsumeStats], frozen=True, kw_only=True):
    """How far a group has consumed each queue. `GetConsumeStatsRequestHeader`.

    `topic_list` is separated by `;` and wins over `topic`. Without both, the reply covers every topic of the group.
    """

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None


@request(317)
class GetBrokerConsumeStats(Request[ConsumeStatsList], frozen=True, kw_only=True):
    """How far every group has consumed. `GetConsumeStatsInBrokerHeader`.

    `is_order`: groups of ordered consumers only.
    """

    is_order: bool = False


@request(343, only_in=5)
class QueryTopicsByConsumer(Request[TopicList], frozen=True, kw_only=True):
    """Topics in which a group has offsets. `QueryTopicsByConsumerRequestHeader`."""

    group: str


@request(345, only_in=5)
class QuerySubscriptionByConsumer(Request[QuerySubscriptionResponseBody], frozen=True, kw_only=True):
    """What a group subscribes to. `QuerySubscriptionByConsumerRequestHeader`."""

    group: str
    topic: str | None = None
