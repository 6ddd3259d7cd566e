"""Tag expressions, parsed as the official FilterAPI parses them."""

from base64 import b64decode

import pytest
from pocketmq.protocol.bodies.client import (
    ExpressionError,
    SubscriptionData,
    build_subscription,
    tag_subscription,
)
from pocketmq.protocol.text import fastjson

from official_vectors import rules


@pytest.mark.parametrize("version", ["4.9.8", "5.5.0"])
def test_expressions_are_parsed_as_by_the_official_parser(version: str):
    for encoded, result in rules(version, "subscription"):
        expression = b64decode(encoded).decode()
        if result.startswith("!"):
            with pytest.raises(ExpressionError, match=result[1:]):
                tag_subscription("t", expression, sub_version=1)
        else:
            expected = fastjson.decode(result, SubscriptionData)
            assert tag_subscription("t", expression, sub_version=1) == expected, expression


@pytest.mark.parametrize("expression_type", [None, "", "TAG"])
def test_no_type_means_tags(expression_type: str | None):
    assert build_subscription("t", "A", expression_type, sub_version=1).tags_set == {"A"}


def test_sql_is_kept_as_text():
    data = build_subscription("t", "a > 1 || b", "SQL92", sub_version=7)
    assert (data.expression_type, data.sub_string, data.tags_set) == ("SQL92", "a > 1 || b", frozenset())
    assert not data.wants_all


def test_sql_without_expression_is_refused():
    with pytest.raises(ExpressionError, match="Expression can't be null! SQL92"):
        build_subscription("t", "", "SQL92", sub_version=1)


def test_star_subscribes_to_all_tags():
    assert tag_subscription("t", None, sub_version=1).wants_all
