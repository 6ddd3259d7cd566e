"""Rules as JSON: the names of the Python methods, one clear error for what is wrong."""

import json
from typing import Any

import msgspec
import pytest
from pocketmq.testing import RocketMQ, WrongValueError
from pocketmq.testing.faults.rule_json import add_rule

from frames_client import Raw
from testing_acts import RULES as EACH_RULE

RULES = [*EACH_RULE, {"effect": "hide_broker", "name": "broker-a"}]


@pytest.mark.parametrize("words", RULES, ids=[json.dumps(words)[12:30] for words in RULES])
def test_a_rule_comes_back_as_it_was_given(one: RocketMQ, words: dict[str, Any]) -> None:
    rule = add_rule(one.faults, words)
    [listed] = msgspec.json.decode(msgspec.json.encode([rule.as_json() for rule in one.faults.rules]))
    assert listed.items() >= words.items()
    assert (listed["id"], listed["hits"]) == (rule.id, [])
    assert one.faults.remove(rule.id)
    assert not one.faults.remove(rule.id)
    assert one.faults.rules == []


def test_hits_are_listed_with_names(one: RocketMQ, client: Raw) -> None:
    add_rule(one.faults, {"effect": "refuse", "code": 30, "response": "SYSTEM_BUSY"})
    client.ask(30, topic="orders", queueId=2)
    [rule] = msgspec.json.decode(msgspec.json.encode([rule.as_json() for rule in one.faults.rules]))
    [hit] = rule["hits"]
    assert (hit["code"], hit["topic"], hit["queue_id"], hit["response"]) == (
        "GET_MAX_OFFSET",
        "orders",
        2,
        "SYSTEM_BUSY",
    )


def test_a_body_may_be_base64(one: RocketMQ, client: Raw) -> None:
    add_rule(one.faults, {"effect": "alter", "code": 30, "body_base64": "AP8="})
    assert bytes(client.ask(30, topic="orders", queueId=2).body or b"") == b"\x00\xff"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (3, "a rule must be a JSON object, got 3"),
        ({}, "effect must be one of refuse, silence"),
        ({"effect": "control", "code": 30}, "effect must be one of"),
        ({"effect": "refuse", "where": "x"}, "refuse has no 'where'; allowed are response, remark, code"),
        ({"effect": "delay", "code": 30}, "delay needs seconds"),
        ({"effect": "delay", "seconds": "1"}, "seconds must be a number"),
        ({"effect": "hide_broker"}, "hide_broker needs name"),
        ({"effect": "network", "times": 1, "latency": 1}, "network has no 'times'"),
        ({"effect": "alter", "body_base64": "?"}, "body_base64 must be base64"),
        ({"effect": "alter", "body": "x", "body_base64": ""}, "not both"),
        ({"effect": "alter", "fields": {"": 1}}, "the name of a field must be a text"),
        ({"effect": "refuse", "queue_id": True}, "queue_id must be a whole number"),
        ({"effect": ["refuse"]}, "effect must be one of"),
    ],
)
def test_a_wrong_rule_is_one_clear_error(one: RocketMQ, words: object, text: str) -> None:
    with pytest.raises(WrongValueError, match=text) as refused:
        add_rule(one.faults, words)
    assert refused.value.allowed
    assert one.faults.rules == []
