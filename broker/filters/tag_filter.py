"""Tag filters: which messages of a queue match a subscription, by the tags code of the queue entry.

The code is the Java hash of the tag, and two tags may have the same hash: the client compares the text again. Mirrors
the tag half of `ExpressionMessageFilter`.
"""

from collections.abc import Callable
from typing import Final

from pocketmq.protocol.bodies.client import SUBSCRIBE_ALL, ExpressionError, SubscriptionData, tag_subscription
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..bounded_cache import BoundedCache
from ..config.broker_config import BrokerConfig
from ..errors import Refusal

MAX_TAGS: Final = 2000
MAX_CHARACTERS: Final = 64 * 1024
"""Of one expression: to read as many takes a few ms. A pull with more is refused as unreadable."""
CACHED_CHARACTERS: Final = 256 * 1024
"""Of all expressions whose tests are kept."""

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
    """The test for the TAG expression in a pull itself. Raises `ExpressionError`, also for too many tags."""
    if expression == SUBSCRIBE_ALL:
        return None
    known = _cache.get(expression)
    if known is None:
        if len(expression) > MAX_CHARACTERS or expression.count("||") >= MAX_TAGS:
            raise ExpressionError(f"more than {MAX_TAGS} tags, or {MAX_CHARACTERS} characters")
        known = tags_match(tag_subscription(topic, expression, sub_version=0)) or _all_match
        _cache.put(expression, known, len(expression))
    return None if known is _all_match else known


def _all_match(code: int) -> bool:
    return True


_cache: Final[BoundedCache[str, TagsMatch]] = BoundedCache(CACHED_CHARACTERS)
