"""Tag filters: which messages of a queue match a subscription, by the tags code of the queue entry.

The code is the Java hash of the tag, and two tags may have the same hash: the client compares the text again. Mirrors
the tag half of `ExpressionMessageFilter`; SQL92 is in `sql_filter.py`.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from pocketmq.protocol.bodies.client import SUBSCRIBE_ALL, SubscriptionData, tag_subscription
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..config.broker_config import BrokerConfig
from ..errors import Refusal

LONGEST_CACHED: Final = 1024
"""Characters of an expression; a longer one, which may fill a frame, is parsed again for each pull."""

TagsMatch = Callable[[int], bool]
"""True for the tags codes that match."""


def check_filter_enabled(config: BrokerConfig, expression_type: str | None) -> None:
    """Refuse every type of expression but TAG if `enablePropertyFilter` is off."""
    if not config.enable_property_filter:
        remark = f"The broker does not support consumer to filter message by {expression_type}"
        raise Refusal(ResponseCode.SYSTEM_ERROR, remark)


def tags_match(subscription: SubscriptionData) -> TagsMatch | None:
    """The test for a subscription; `None` if every message matches."""
    if subscription.sub_string == SUBSCRIBE_ALL or subscription.class_filter_mode:
        return None
    return frozenset(subscription.code_set).__contains__


def expression_match(topic: str, expression: str) -> TagsMatch | None:
    """The test for the TAG expression in a pull itself. Raises `ExpressionError`."""
    if len(expression) > LONGEST_CACHED:
        return tags_match(tag_subscription(topic, expression, sub_version=0))
    return _cached_match(topic, expression)


@lru_cache(maxsize=4096)
def _cached_match(topic: str, expression: str) -> TagsMatch | None:
    return tags_match(tag_subscription(topic, expression, sub_version=0))
