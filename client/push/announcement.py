"""What a push consumer asks about its subscriptions before it reads them: the routes, and a check of expressions.

Mirrors `DefaultMQPushConsumerImpl.updateTopicSubscribeInfoWhenSubscriptionChanged` and
`MQClientInstance.checkClientInBroker`.
"""

import logging
from collections.abc import Iterable

from pocketmq.protocol.bodies.client import CheckClientRequestBody, is_tag_type
from pocketmq.protocol.message.topics import is_retry_topic
from pocketmq.protocol.requests.membership import CheckClientConfig

from ..errors import ClientError, RouteNotFound
from ..instance.instance import ClientInstance
from ..instance.route_book import RouteBook
from ..rebalancing.subscriptions import Subscriptions

_log = logging.getLogger(__name__)


async def find_routes(routes: RouteBook, group: str, topics: Iterable[str]) -> bool:
    """Find the routes of these topics. True if the name servers answered for each, a missing topic included."""
    answered = True
    for topic in topics:
        try:
            await routes.find_route(topic)
        except ClientError as error:
            answered &= isinstance(error, RouteNotFound)
            if not is_retry_topic(topic):
                _log.warning("%s: %s", group, error)
    return answered


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
