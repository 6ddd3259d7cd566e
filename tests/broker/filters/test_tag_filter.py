"""The cache of tag expressions stays small, whatever peers send, and a pull's expression costs a few ms at most."""

import pytest
from pocketmq.broker.bounded_cache import BoundedCache
from pocketmq.broker.filters import tag_filter
from pocketmq.protocol.bodies.client import ExpressionError


def test_the_test_of_an_expression_is_kept() -> None:
    assert tag_filter.expression_match("T", "A") is tag_filter.expression_match("T", "A")
    assert tag_filter.expression_match("T", "*") is None


def test_an_expression_of_too_many_tags_is_refused_unread() -> None:
    tags = [f"Tag{number}" for number in range(tag_filter.MAX_TAGS)]
    assert tag_filter.expression_match("T", "||".join(tags)) is not None
    with pytest.raises(ExpressionError, match="tags"):
        tag_filter.expression_match("T", "||".join([*tags, "one more"]))


def test_a_cache_keeps_the_entries_used_last_within_its_length() -> None:
    cache: BoundedCache[str, int] = BoundedCache(3 * 100)
    for number in range(3):
        cache.put(str(number), number, 36)
    assert cache.get("0") == 0
    cache.put("3", 3, 36)
    assert [cache.get(str(number)) for number in range(4)] == [0, None, 2, 3]


def test_an_entry_longer_than_the_cache_is_not_kept_and_drives_nothing_out() -> None:
    cache: BoundedCache[str, int] = BoundedCache(200)
    cache.put("a", 1, 100)
    cache.put("b", 2, 500)
    assert (cache.get("a"), cache.get("b")) == (1, None)
