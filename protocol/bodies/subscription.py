"""Build a SubscriptionData from what a user writes: `TagA || TagB`, `*`, or an SQL92 expression.

The value itself is declared with the heartbeat (`client.py`). Matching stored messages against it is
the broker's work; SQL92 is not parsed here."""

from ..errors import ProtocolError
from ..message.java_strings import java_hash
from .client import SQL92, SUBSCRIBE_ALL, TAG, SubscriptionData

__all__ = ["ExpressionError", "build_subscription", "is_tag_type", "tag_subscription"]


class ExpressionError(ProtocolError):
    """A subscription expression cannot be read: answered SUBSCRIPTION_PARSE_FAILED."""


def is_tag_type(expression_type: str | None) -> bool:
    """No type means tags (official ExpressionType.isTagType)."""
    return not expression_type or expression_type == TAG


def tag_subscription(topic: str, expression: str | None, *, sub_version: int) -> SubscriptionData:
    """Official FilterAPI.buildSubscriptionData. `sub_version` is the present time in ms.

    None, empty and `*` want everything. Raises ExpressionError for an expression of separators only, like
    `||`."""
    if not expression or expression == SUBSCRIBE_ALL:
        return SubscriptionData(topic=topic, sub_string=SUBSCRIBE_ALL, sub_version=sub_version)
    parts = expression.split("||")
    if not any(parts):
        raise ExpressionError("subString split error")
    tags = frozenset(tag for part in parts if (tag := _trimmed(part)))
    return SubscriptionData(
        topic=topic,
        sub_string=expression,
        tags_set=tags,
        code_set=frozenset(java_hash(tag) for tag in tags),
        sub_version=sub_version,
    )


def build_subscription(
    topic: str, expression: str | None, expression_type: str | None, *, sub_version: int
) -> SubscriptionData:
    """Official FilterAPI.build: tags, or any other type with its expression kept as text. Raises
    ExpressionError."""
    if is_tag_type(expression_type):
        return tag_subscription(topic, expression, sub_version=sub_version)
    if not expression:
        raise ExpressionError(f"Expression can't be null! {expression_type}")
    return SubscriptionData(
        topic=topic, sub_string=expression, expression_type=expression_type or SQL92, sub_version=sub_version
    )


def _trimmed(text: str) -> str:
    """Java's trim takes off everything up to the blank, and no other white space."""
    return text.strip("".join(map(chr, range(0x21))))
