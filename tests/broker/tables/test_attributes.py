"""Attribute changes, with the results and refusals recorded from the official AttributeUtil."""

import re

import pytest
from pocketmq.broker.tables.attributes import (
    GROUP_ATTRIBUTES,
    TOPIC_ATTRIBUTES,
    AttributeRefusedError,
    alter_attributes,
    parse_attributes,
)

from official_vectors import rules

CURRENT = {"message.type": "NORMAL", "cleanup.policy": "DELETE"}
"""Attributes of the topic that was altered in the recorded cases marked `u`."""


@pytest.mark.parametrize(("case", "result"), rules("5.5.0", "attributes"))
def test_changes_end_as_in_the_official_broker(case: str, result: str):
    kind, _, text = case.partition(" ")
    known = GROUP_ATTRIBUTES if kind == "g" else TOPIC_ATTRIBUTES
    current = CURRENT if kind == "u" else None
    if not result.startswith("!"):
        changed = alter_attributes(known, current, parse_attributes(text))
        assert "{" + ", ".join(f"{key}={changed[key]}" for key in sorted(changed)) + "}" == result
        return
    remark = result.split(": ", 1)[1]
    if "not in set" in remark:
        remark = "value is not in set: ["  # Java prints the members in any order
    with pytest.raises(AttributeRefusedError, match=re.escape(remark)):
        alter_attributes(known, current, parse_attributes(text))


def test_no_text_means_no_change():
    assert parse_attributes(None) == parse_attributes("") == {}
    assert alter_attributes(TOPIC_ATTRIBUTES, CURRENT, {}) == CURRENT


def test_refusal_changes_nothing():
    current = dict(CURRENT)
    with pytest.raises(AttributeRefusedError):
        alter_attributes(TOPIC_ATTRIBUTES, current, {"-message.type": "", "+message.type2": "x"})
    assert current == CURRENT


def test_a_value_must_follow_the_equals_sign():
    with pytest.raises(AttributeRefusedError, match="without value"):
        parse_attributes("+message.type=")
