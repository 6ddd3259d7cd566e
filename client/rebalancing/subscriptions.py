"""The topics a consumer reads, each with the expression that selects its messages.

Every subscription has a version: a time that grows when the subscription or its queues change, so that a broker takes
the newest of what the members of a group send. Mirrors `RebalanceImpl.subscriptionInner`.
"""

from collections.abc import Iterator

import msgspec
from pocketmq.protocol.bodies.client import ExpressionError, SubscriptionData, build_subscription

from ..clock import steady_ms
from ..errors import InvalidArgument


class Subscriptions:
    """Of one consumer, by topic. Iteration gives the topics."""

    def __init__(self) -> None:
        self._by_topic: dict[str, SubscriptionData] = {}

    def __contains__(self, topic: object) -> bool:
        return topic in self._by_topic

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._by_topic))

    def get(self, topic: str) -> SubscriptionData | None:
        return self._by_topic.get(topic)

    def all(self) -> list[SubscriptionData]:
        return list(self._by_topic.values())

    def subscribe(self, topic: str, expression: str, expression_type: str = "TAG") -> None:
        """Read a topic, in place of an earlier subscription to it. InvalidArgument for a wrong expression."""
        self._by_topic[topic] = subscription_of(topic, expression, expression_type)

    def unsubscribe(self, topic: str) -> None:
        self._by_topic.pop(topic, None)

    def renew(self, topic: str) -> None:
        """Give the topic's subscription a new version."""
        subscription = self._by_topic.get(topic)
        if subscription is not None:
            self._by_topic[topic] = msgspec.structs.replace(subscription, sub_version=steady_ms())


def subscription_of(topic: str, expression: str, expression_type: str = "TAG") -> SubscriptionData:
    """A subscription of now. InvalidArgument for a wrong expression, in the official words."""
    try:
        return build_subscription(topic, expression, expression_type, sub_version=steady_ms())
    except ExpressionError as error:
        raise InvalidArgument(f"subscription exception: {error}") from error
