"""The topics a consumer reads, each with the expression that selects its messages.

Every subscription has a version: a time that grows when the subscription or its queues change, so that a broker takes
the newest of what the members of a group send. Mirrors `RebalanceImpl.subscriptionInner`.
"""

import msgspec
from pocketmq.protocol.bodies.client import ExpressionError, SubscriptionData, build_subscription

from ..clock import steady_ms
from ..errors import InvalidArgument


class Subscriptions(dict[str, SubscriptionData]):
    """Of one consumer, by topic."""

    def subscribe(self, topic: str, expression: str, expression_type: str = "TAG") -> None:
        """Read a topic, in place of an earlier subscription to it. InvalidArgument for a wrong expression."""
        self[topic] = subscription_of(topic, expression, expression_type)

    def renew(self, topic: str) -> None:
        """Give the topic's subscription a new version."""
        if topic in self:
            self[topic] = msgspec.structs.replace(self[topic], sub_version=steady_ms())


def subscription_of(topic: str, expression: str, expression_type: str = "TAG") -> SubscriptionData:
    """A subscription of now. InvalidArgument for a wrong expression, in the official words."""
    try:
        return build_subscription(topic, expression, expression_type, sub_version=steady_ms())
    except ExpressionError as error:
        raise InvalidArgument(f"subscription exception: {error}") from error
