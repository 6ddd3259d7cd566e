"""The cache of tag expressions stays small, whatever peers send."""

from pocketmq.broker.filters import tag_filter


def test_long_expression_is_applied_but_not_remembered() -> None:
    before = tag_filter._cached_match.cache_info().currsize
    expression = " || ".join(f"Tag{number}" for number in range(1000))
    matches = tag_filter.expression_match("T", expression)
    assert matches is not None
    assert tag_filter._cached_match.cache_info().currsize == before
    assert tag_filter.expression_match("T", "A") is tag_filter.expression_match("T", "A")
