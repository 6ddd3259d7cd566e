"""Which messages of a queue a subscription wants: by the tags code of the queue entry, or by SQL92 on the record.

The code is the Java hash of the tag, so two tags may share one: the client compares the text again. Mirrors
`ExpressionMessageFilter`; SQL92 itself is in `sql_filter.py`.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from pocketmq.protocol.bodies.client import SUBSCRIBE_ALL, SubscriptionData, tag_subscription
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..config.broker_config import BrokerConfig
from ..errors import BrokerError

LONGEST_REMEMBERED: Final = 1024
"""Characters of an expression; a longer one, which may fill a frame, is read anew with each pull."""

TagsMatch = Callable[[int], bool]
"""True for the tags codes a pull wants."""


def check_filter_enabled(config: BrokerConfig, expression_type: str | None) -> None:
    """Refuse any type of expression but TAG where `enablePropertyFilter` is off."""
    if not config.enable_property_filter:
        remark = f"The broker does not support consumer to filter message by {expression_type}"
        raise BrokerError(ResponseCode.SYSTEM_ERROR, remark)


def tags_match(subscription: SubscriptionData) -> TagsMatch | None:
    """The test for a subscription; `None` where every message matches."""
    if subscription.sub_string == SUBSCRIBE_ALL or subscription.class_filter_mode:
        return None
    return frozenset(subscription.code_set).__contains__


def expression_match(topic: str, expression: str) -> TagsMatch | None:
    """The test of a TAG expression carried by a pull itself. Raises `ExpressionError`."""
    if len(expression) > LONGEST_REMEMBERED:
        return tags_match(tag_subscription(topic, expression, sub_version=0))
    return _remembered_match(topic, expression)


@lru_cache(maxsize=4096)
def _remembered_match(topic: str, expression: str) -> TagsMatch | None:
    return tags_match(tag_subscription(topic, expression, sub_version=0))
