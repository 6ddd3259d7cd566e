"""Clients register and unregister: 34 HEART_BEAT, 35, 38, the queue locks 41 and 42, and 46 CHECK_CLIENT_CONFIG.

Mirrors `ClientManageProcessor`, the member list of `ConsumerManageProcessor` and the lock part of
`AdminBrokerProcessor`.

A heartbeat V2 (5.x) carries a fingerprint of the client's groups and subscriptions. While the fingerprint stays the
same, the heartbeat omits the subscriptions; IS_SUB_CHANGE=true in the reply asks the client to send them again.
"""

from typing import Final, TypeVar

from pocketmq.protocol.bodies.body import Body
from pocketmq.protocol.bodies.client import (
    CheckClientRequestBody,
    ConsumerData,
    ConsumeType,
    GetConsumerListByGroupResponseBody,
    HeartbeatData,
    LockBatchRequestBody,
    LockBatchResponseBody,
    UnlockBatchRequestBody,
    is_tag_type,
)
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message import flags
from pocketmq.protocol.message.topics import retry_topic
from pocketmq.protocol.requests.membership import (
    CheckClientConfig,
    GetConsumerListByGroup,
    HeartBeat,
    HeartBeatReply,
    LockBatchMq,
    UnlockBatchMq,
    UnregisterClient,
)
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..errors import Refusal
from ..filters.sql_filter import ExpressionRefused, compile_expression
from ..filters.tag_filter import check_filter_enabled
from ..network.dispatch import Call, CallWithBody, handles
from .consumer_groups import Client
from .membership import Membership

MAX_BODY_BYTES: Final = 1 << 20
"""Of the requests of this file: a heartbeat of a thousand groups has 0.3 MiB, and its subscriptions are kept."""
MAX_GROUPS: Final = 1024
"""Producer and consumer groups of one connection."""
MAX_SUBSCRIPTIONS: Final = 4096
"""In one heartbeat."""
MAX_NAME_LENGTH: Final = 1024
"""Of client ids, groups and topics, which the log shows."""

BodyT = TypeVar("BodyT", bound=Body)


def _read_body(call: CallWithBody[BodyT]) -> BodyT:
    """The body of a request. Raises `BodyError` if it is longer than any client needs."""
    if len(call.body) > MAX_BODY_BYTES:
        raise BodyError(f"a body of {len(call.body)} bytes, at most {MAX_BODY_BYTES} are allowed")
    return call.read_body()


@handles(HeartBeat)
def heart_beat(
    membership: Membership, request: HeartBeat, call: CallWithBody[HeartbeatData]
) -> HeartBeatReply:
    """Register the producers and consumers of one client; creates the retry topics of the consumers."""
    heartbeat = _read_body(call)
    _check(membership, heartbeat, call)
    command = call.command
    now_ms = membership.clock.wall_ms()
    client = Client(call.connection, heartbeat.client_id or "", command.language, command.version, now_ms)
    is_changed = False
    for consumer in heartbeat.consumer_data_set:
        is_changed |= _register_consumer(membership, heartbeat, consumer, client)
    for producer in heartbeat.producer_data_set:
        membership.producers.register(producer.group_name or "", client)
    if not membership.is_5:
        return HeartBeatReply()
    return HeartBeatReply(
        is_support_heart_beat_v2=True, is_sub_change=is_changed or heartbeat.heartbeat_fingerprint == 0
    )


def _check(membership: Membership, heartbeat: HeartbeatData, call: Call) -> None:
    """Raise `BodyError` for a heartbeat without names, or one that would leave more here than a client may, before any
    part of it is registered."""
    consumers, producers = heartbeat.consumer_data_set, heartbeat.producer_data_set
    names = [one.group_name for one in consumers] + [one.group_name for one in producers]
    if None in names:
        raise BodyError("HeartbeatData: a group without groupName")
    for consumer in consumers:
        if any(subscription.topic is None for subscription in consumer.subscription_data_set):
            raise BodyError(f"HeartbeatData: group {consumer.group_name} has a subscription without topic")
    subscriptions = sum(len(consumer.subscription_data_set) for consumer in consumers)
    if subscriptions > MAX_SUBSCRIPTIONS:
        raise BodyError(
            f"HeartbeatData: {subscriptions} subscriptions, at most {MAX_SUBSCRIPTIONS} are allowed"
        )
    groups = 0
    for named, known in ((consumers, membership.consumers), (producers, membership.producers)):
        groups += len({one.group_name for one in named}.union(known.of_connection(call.connection)))
    if groups > MAX_GROUPS:
        raise BodyError(f"HeartbeatData: {groups} groups of one connection, at most {MAX_GROUPS} are allowed")
    names += [one.topic for consumer in consumers for one in consumer.subscription_data_set]
    names.append(heartbeat.client_id)
    if max(len(name or "") for name in names) > MAX_NAME_LENGTH:
        raise BodyError(f"HeartbeatData: a name of more than {MAX_NAME_LENGTH} characters")


def _register_consumer(
    membership: Membership, heartbeat: HeartbeatData, consumer: ConsumerData, client: Client
) -> bool:
    """Register one consumer entry; True if the fingerprint has changed, because then the subscriptions known here may
    be outdated."""
    name = consumer.group_name or ""
    if (
        membership.is_5
        and membership.config.reject_pull_consumer_enable
        and consumer.consume_type == ConsumeType.CONSUME_ACTIVELY
    ):
        return False
    is_v2 = heartbeat.heartbeat_fingerprint != 0 and membership.is_5
    group_config = membership.groups.find_or_create(name)
    if group_config is None and membership.is_5:
        return False  # an unknown group that may not be created is ignored
    if group_config is not None:
        is_ordered = membership.is_5 and any(
            membership.topics.is_order_topic(subscription.topic or "")
            for subscription in consumer.subscription_data_set
        )
        membership.topics.create_for_send_back(
            retry_topic(name),
            group_config.retry_queue_nums,
            flags.PERM_READ | flags.PERM_WRITE,
            flags.TOPIC_UNIT_SUB if consumer.unit_mode else 0,
            order=is_ordered,
        )
    before = membership.consumers.get(name)
    remembered = None if before is None else before.heartbeat_fingerprint
    without_sub = is_v2 and heartbeat.without_sub
    subscribed = {} if before is None else before.expressions()
    membership.consumers.register(
        name,
        client,
        consume_type=consumer.consume_type,
        message_model=consumer.message_model,
        consume_from_where=consumer.consume_from_where,
        subscriptions=None if without_sub else consumer.subscription_data_set,
        is_notified=group_config is None or group_config.notify_consumer_ids_changed_enable,
    )
    if not without_sub:
        membership.filters.register(name, consumer.subscription_data_set)
    group = membership.consumers.get(name)
    if group is not None:
        group.heartbeat_fingerprint = heartbeat.heartbeat_fingerprint
        if not without_sub:
            membership.hints.heartbeat(group, subscribed, consumer.subscription_data_set)
    if remembered is None:
        # Also after our restart: the official broker would continue without the subscriptions.
        return without_sub
    return is_v2 and remembered != heartbeat.heartbeat_fingerprint


@handles(UnregisterClient)
def unregister_client(membership: Membership, request: UnregisterClient, call: Call) -> None:
    if request.producer_group is not None:
        membership.producers.unregister(request.producer_group, call.connection)
    group = request.consumer_group
    if group is not None:
        group_config = membership.groups.find_or_create(group)
        is_notified = group_config is None or group_config.notify_consumer_ids_changed_enable
        membership.consumers.unregister(group, call.connection, is_notified=is_notified)


@handles(GetConsumerListByGroup)
def get_consumer_list_by_group(
    membership: Membership, request: GetConsumerListByGroup
) -> GetConsumerListByGroupResponseBody:
    """The client ids of a group, among which a consumer shares the queues."""
    group = membership.consumers.get(request.consumer_group)
    if group is None:
        remark = f"no consumer for this group, {request.consumer_group}"
        raise Refusal(ResponseCode.SYSTEM_ERROR, remark)
    return GetConsumerListByGroupResponseBody(consumer_id_list=group.client_ids())


@handles(LockBatchMq)
def lock_batch_mq(
    membership: Membership, request: LockBatchMq, call: CallWithBody[LockBatchRequestBody]
) -> LockBatchResponseBody:
    """Lock queues for one client; the reply names the queues that the client holds now."""
    body = _read_body(call)
    held = membership.locks.lock(
        body.consumer_group or "", body.mq_set, body.client_id or "", membership.clock.now_ms()
    )
    return LockBatchResponseBody(lock_ok_mq_set=held)


@handles(UnlockBatchMq)
def unlock_batch_mq(
    membership: Membership, request: UnlockBatchMq, call: CallWithBody[UnlockBatchRequestBody]
) -> None:
    body = _read_body(call)
    membership.locks.unlock(body.consumer_group or "", body.mq_set, body.client_id or "")


@handles(CheckClientConfig)
def check_client_config(
    membership: Membership, request: CheckClientConfig, call: CallWithBody[CheckClientRequestBody]
) -> None:
    """Check a subscription; refuses exactly the subscriptions whose pulls are refused."""
    if not call.body and membership.is_5:
        return
    subscription = _read_body(call).subscription_data
    if subscription is None or is_tag_type(subscription.expression_type):
        return
    check_filter_enabled(membership.config, subscription.expression_type)
    try:
        compile_expression(subscription.sub_string, subscription.expression_type, is_5=membership.is_5)
    except ExpressionRefused as refusal:
        raise Refusal(ResponseCode.SUBSCRIPTION_PARSE_FAILED, str(refusal)) from refusal
