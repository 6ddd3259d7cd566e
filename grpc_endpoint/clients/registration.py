"""Clients in the broker's groups of producers and consumers, where `mqadmin` and the transaction check see them.

A producer is in one group for each topic that it publishes, named like the topic. A consumer is in its group, without
notices to the other members: the server shares messages out, not the clients. Mirrors `ClientActivity` and
`ConsumerManager`.
"""

from collections.abc import Iterable
from typing import Final

from pocketmq.broker.filters.sql_filter import MAX_EXPRESSION
from pocketmq.broker.membership.consumer_groups import Client
from pocketmq.broker.membership.membership import Membership
from pocketmq.protocol.bodies.client import (
    SQL92,
    TAG,
    ConsumeFromWhere,
    ConsumeType,
    ExpressionError,
    MessageModel,
    SubscriptionData,
    build_subscription,
)
from pocketmq.protocol.languages import V5_5_0

from ..calls.handler import RpcRefused
from ..messages import ClientType, Code, FilterExpression, FilterType, Settings, SubscriptionEntry
from .peer import GrpcPeer

PUSH: Final = (ClientType.PUSH_CONSUMER, ClientType.LITE_PUSH_CONSUMER)


def subscription_of(topic: str, expression: FilterExpression, *, sub_version: int = 0) -> SubscriptionData:
    """What a client wants of a topic; a type that is not sent is TAG. Raises `ExpressionError`."""
    if len(expression.expression) > MAX_EXPRESSION:
        raise ExpressionError(f"an expression of more than {MAX_EXPRESSION} characters")
    kind = SQL92 if expression.type == FilterType.SQL else TAG
    return build_subscription(topic, expression.expression, kind, sub_version=sub_version)


def register_producer(membership: Membership, peer: GrpcPeer, topics: Iterable[str]) -> None:
    """Register or renew a producer of these topics."""
    client = _client(membership, peer)
    for topic in topics:
        membership.producers.register(topic, client)


def register_consumer(
    membership: Membership, peer: GrpcPeer, group: str, settings: Settings, *, is_new: bool
) -> None:
    """Register or renew a consumer. With `is_new` its subscriptions replace those that its group had before, as the
    newest settings win; without, they count only if the group had none. Raises `RpcRefused` for a bad expression."""
    subscription = settings.subscription
    before = membership.consumers.get(group)
    subscriptions = None
    if is_new or before is None:
        subscriptions = _subscriptions(membership, subscription.subscriptions)
    subscribed = {} if before is None else before.expressions()
    is_push = settings.client_type in PUSH
    membership.consumers.register(
        group,
        _client(membership, peer),
        consume_type=ConsumeType.CONSUME_PASSIVELY if is_push else ConsumeType.CONSUME_ACTIVELY,
        message_model=MessageModel.CLUSTERING,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
        subscriptions=subscriptions,
        is_notified=False,
    )
    if subscriptions is not None:
        membership.filters.register(group, subscriptions)
        after = membership.consumers.get(group)
        if after is not None:
            membership.hints.heartbeat(after, subscribed, subscriptions, shares_queues=True)


def _client(membership: Membership, peer: GrpcPeer) -> Client:
    return Client(peer, peer.client_id, peer.language, V5_5_0, membership.clock.wall_ms())


def _subscriptions(membership: Membership, entries: Iterable[SubscriptionEntry]) -> list[SubscriptionData]:
    version = membership.clock.wall_ms()
    try:
        return [subscription_of(entry.topic.name, entry.expression, sub_version=version) for entry in entries]
    except ExpressionError:
        text = "expression format is not correct"
        raise RpcRefused(Code.ILLEGAL_FILTER_EXPRESSION, text) from None
