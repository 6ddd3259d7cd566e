"""Pulls: 11 PULL_MESSAGE and 361 LITE_PULL_MESSAGE.

Checks the group, the topic and the subscription, in the order of `PullMessageProcessor`; then `pull.py` answers.
"""

from typing import Final

from pocketmq.protocol.bodies.client import is_tag_type
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message import flags
from pocketmq.protocol.requests.pull import LitePullMessage, PullMessage
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..errors import Refusal, faq
from ..filters.sql_filter import ExpressionRefused, MessageFilter, SqlFilter, by_tags, compile_expression
from ..filters.tag_filter import check_filter_enabled, expression_match, tags_match
from ..network.dispatch import Answer, Call, Held, handles
from ..state.part import illegal_queue, invalid_parameter
from .pull import Pull
from .pulling import Pulling

FORBIDDEN_BROKER: Final = 1
FORBIDDEN_GROUP: Final = 2
FORBIDDEN_TOPIC: Final = 3
FORBIDDEN_BROADCAST: Final = 4
FORBIDDEN_SUBSCRIPTION: Final = 5


class PullForbidden(Refusal):
    """NO_PERMISSION with the number by which a 5.x client learns whether broker, group or topic forbids the pull."""

    def __init__(self, forbidden_type: int, remark: str) -> None:
        super().__init__(ResponseCode.NO_PERMISSION, remark)
        self.forbidden_type = forbidden_type


@handles(PullMessage, main_port=True)
@handles(LitePullMessage, main_port=True)
def pull_message(pulling: Pulling, request: PullMessage, call: Call) -> Answer | Held:
    """Answer the messages from `queue_offset` on; hold the request if the queue has none and the request may wait."""
    try:
        group_config = _check_group(pulling, request)
        topic_config = _check_topic(pulling, request, call)
        wanted = _check_subscription(pulling, request, group_config)
    except PullForbidden as refusal:
        fields = {"forbiddenType": str(refusal.forbidden_type)} if pulling.is_5 else None
        return Answer(code=refusal.code, remark=refusal.remark, fields=fields)
    return Pull(pulling, request, call, topic_config, group_config, wanted).try_now()


def _check_group(pulling: Pulling, request: PullMessage) -> SubscriptionGroupConfig:
    config = pulling.config
    if not config.broker_permission & flags.PERM_READ:
        raise PullForbidden(FORBIDDEN_BROKER, f"the broker[{config.broker_ip1}] pulling message is forbidden")
    if isinstance(request, LitePullMessage) and not config.lite_pull_message_enable:
        remark = f"the broker[{config.broker_ip1}] for lite pull consumer is forbidden"
        raise PullForbidden(FORBIDDEN_BROKER, remark)
    group_config = pulling.existing_group(request.consumer_group)
    if not group_config.consume_enable:
        remark = f"subscription group no permission, {request.consumer_group}"
        raise PullForbidden(FORBIDDEN_GROUP, remark)
    return group_config


def _check_topic(pulling: Pulling, request: PullMessage, call: Call) -> TopicConfig:
    topic_config = pulling.existing_topic(request.topic)
    if not topic_config.perm & flags.PERM_READ:
        raise PullForbidden(FORBIDDEN_TOPIC, f"the topic[{request.topic}] pulling message is forbidden")
    if not 0 <= request.queue_id < topic_config.read_queue_nums:
        remark = illegal_queue(topic_config, request.queue_id, f"/{call.connection.peer}")
        raise Refusal(invalid_parameter(pulling.config), remark)
    return topic_config


def _check_subscription(
    pulling: Pulling, request: PullMessage, group_config: SubscriptionGroupConfig
) -> MessageFilter:
    """The filter of the pull, from its own subscription or from the group's heartbeats."""
    if request.sys_flag & flags.PULL_SUBSCRIPTION:
        if not is_tag_type(request.expression_type):
            return MessageFilter(sql=_sql_of_request(pulling, request))
        try:
            return by_tags(expression_match(request.topic, request.subscription or "*"))
        except ProtocolError as error:
            raise _parse_refusal() from error
    group = pulling.consumers.get(request.consumer_group)
    if group is None:
        remark = f"the consumer's group info not exist{faq(is_5=pulling.is_5)}"
        raise Refusal(ResponseCode.SUBSCRIPTION_NOT_EXIST, remark)
    if not group_config.consume_broadcast_enable and group.message_model == "BROADCASTING":
        remark = f"the consumer group[{request.consumer_group}] can not consume by broadcast way"
        raise PullForbidden(FORBIDDEN_BROADCAST, remark)
    if pulling.groups.is_forbidden(request.consumer_group, request.topic):
        remark = f"the consumer group[{request.consumer_group}] is forbidden for topic[{request.topic}]"
        raise PullForbidden(FORBIDDEN_SUBSCRIPTION, remark)
    subscription = group.subscriptions.get(request.topic)
    if subscription is None:
        remark = f"the consumer's subscription not exist{faq(is_5=pulling.is_5)}"
        raise Refusal(ResponseCode.SUBSCRIPTION_NOT_EXIST, remark)
    if subscription.sub_version < request.sub_version:
        pulling.hints.pull_is_ahead(request.consumer_group, request.topic)
        raise Refusal(ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest")
    if is_tag_type(subscription.expression_type):
        return by_tags(tags_match(subscription))
    return MessageFilter(sql=_sql_of_group(pulling, request, subscription.expression_type))


def _parse_refusal() -> Refusal:
    return Refusal(ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed")


def _sql_of_request(pulling: Pulling, request: PullMessage) -> SqlFilter | None:
    """The filter in the request itself. An expression that cannot be compiled filters nothing, as in the official
    broker: the client has checked it with 46 before."""
    if not request.subscription:
        raise _parse_refusal()
    check_filter_enabled(pulling.config, request.expression_type)
    try:
        return compile_expression(request.subscription, request.expression_type, is_5=pulling.is_5)
    except ExpressionRefused:
        return None


def _sql_of_group(pulling: Pulling, request: PullMessage, expression_type: str) -> SqlFilter:
    """The filter that the group's heartbeats registered; compiled only if property filters are on."""
    check_filter_enabled(pulling.config, expression_type)
    known = pulling.filters.find(request.topic, request.consumer_group)
    if known is None:
        raise Refusal(
            ResponseCode.FILTER_DATA_NOT_EXIST,
            "The broker's consumer filter data is not exist!Your expression may be wrong!",
        )
    data, sql = known
    if data.client_version < request.sub_version:
        raise Refusal(ResponseCode.FILTER_DATA_NOT_LATEST, "the consumer's consumer filter data not latest")
    return sql
