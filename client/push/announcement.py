"""What a push consumer asks about its subscriptions before it reads them: the routes, and a check of expressions.

Mirrors `DefaultMQPushConsumerImpl.updateTopicSubscribeInfoWhenSubscriptionChanged` and
`MQClientInstance.checkClientInBroker`.
"""

import logging

from pocketmq.protocol.bodies.client import CheckClientRequestBody, is_tag_type
from pocketmq.protocol.requests.membership import CheckClientConfig

from ..instance.instance import ClientInstance
from ..rebalancing.subscriptions import Subscriptions

_log = logging.getLogger(__name__)


async def check_expressions(instance: ClientInstance, group: str, subscriptions: Subscriptions) -> None:
    """Let a broker check expressions that are not tags. ClientError if it refuses one."""
    routes = instance.routes
    for subscription in subscriptions.all():
        topic = subscription.topic or ""
        if is_tag_type(subscription.expression_type) or routes.publish_route(topic) is None:
            continue
        address = await routes.find_any_broker(topic)
        body = CheckClientRequestBody(
            client_id=instance.client_id, group=group, subscription_data=subscription
        )
        await instance.connections.call(
            address, CheckClientConfig(), body, timeout_seconds=instance.api_timeout_seconds
        )
