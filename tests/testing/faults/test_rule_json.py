"""Rules as JSON: the names of the Python methods, one clear error for what is wrong."""

import json
from typing import Any

import msgspec
import pytest
from pocketmq.testing import RocketMQ, WrongValueError
from pocketmq.testing.faults.rule_json import add_rule

from frames_client import raw

RULES: list[dict[str, Any]] = [
    {
        "effect": "refuse",
        "code": "SEND_MESSAGE_V2",
        "topic": "orders",
        "response": "SYSTEM_BUSY",
        "remark": "full",
    },
    {"effect": "silence", "queue_id": 3, "execute": True, "times": None},
    {"effect": "disconnect", "group": "g", "reset": True, "times": 2},
    {"effect": "delay", "client_id": "c", "seconds": 0.5, "jitter": 0.25, "after": 1},
    {"effect": "alter", "fields": {"offset": "3"}, "body": "text", "opaque": 7, "probability": 0.5},
    {"effect": "duplicate", "oneway": False, "may_stay_unused": True},
    {"effect": "network", "client": "c", "latency": 0.1, "bandwidth": 1000, "slice_bytes": 10},
    {"effect": "network", "half_open": True},
    {"effect": "route", "topic": "t", "queues": 2},
]


@pytest.mark.parametrize("words", RULES, ids=[json.dumps(words)[12:30] for words in RULES])
def test_a_rule_comes_back_as_it_was_given(one: RocketMQ, words: dict[str, Any]) -> None:
    rule = add_rule(one.faults, words)
    [listed] = msgspec.json.decode(msgspec.json.encode([rule.as_json() for rule in one.faults.rules]))
    assert listed.items() >= words.items()
    assert (listed["id"], listed["hits"]) == (rule.id, [])
    assert one.faults.remove(rule.id)
    assert not one.faults.remove(rule.id)
    assert one.faults.rules == []


def test_routes_name_the_brokers_that_exist(one: RocketMQ) -> None:
    name = one.server.broker.config.broker_name
    add_rule(one.faults, {"effect": "hide_broker", "name": name})
    add_rule(one.faults, {"effect": "name_servers_disagree", "topic": "t", "brokers": {"n0": [name]}})
    assert [rule["effect"] for rule in [rule.as_json() for rule in one.faults.rules]] == [
        "hide_broker",
        "name_servers_disagree",
    ]


def test_hits_are_listed_with_names(one: RocketMQ) -> None:
    add_rule(one.faults, {"effect": "refuse", "code": 30, "response": "SYSTEM_BUSY"})
    with raw(one.server.broker_addr) as client:
        client.ask(30, topic="orders", queueId=2)
    [rule] = msgspec.json.decode(msgspec.json.encode([rule.as_json() for rule in one.faults.rules]))
    [hit] = rule["hits"]
    assert (hit["code"], hit["topic"], hit["queue_id"], hit["response"]) == (
        "GET_MAX_OFFSET",
        "orders",
        2,
        "SYSTEM_BUSY",
    )


def test_a_body_may_be_base64(one: RocketMQ) -> None:
    add_rule(one.faults, {"effect": "alter", "code": 30, "body_base64": "AP8="})
    with raw(one.server.broker_addr) as client:
        assert bytes(client.ask(30, topic="orders", queueId=2).body or b"") == b"\x00\xff"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (3, "a rule must be a JSON object, got 3"),
        ({}, "effect must be one of refuse, silence"),
        ({"effect": "control", "code": 30}, "effect must be one of"),
        ({"effect": "refuse", "where": "x"}, "refuse has no 'where'; allowed are response, remark, code"),
        ({"effect": "refuse", "code": "SEND"}, "code must be the official name"),
        ({"effect": "delay", "code": 30}, "delay needs seconds"),
        ({"effect": "delay", "seconds": "1"}, "seconds must be a number"),
        ({"effect": "hide_broker"}, "hide_broker needs name"),
        ({"effect": "network", "latency": -1}, "latency must be a number of at least 0"),
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
