"""Rules: their order, their uses, wrong values, and what is said of those that stay unused."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.broker.errors import Refusal
from pocketmq.protocol.wire.command import Command
from pocketmq.testing import DROP, EmbeddedServer, RocketMQ, WrongValueError
from pocketmq.testing.faults.effects import Silence
from pocketmq.testing.faults.fault_watcher import ActiveRules
from pocketmq.testing.faults.rule import Rule, words_of
from pocketmq.testing.requests.logged_request import LogEntry, LoggedConnection, LoggedRequest

from frames_client import Raw, raw
from testing_acts import SEND as SEND_FIELDS

SEND = "SEND_MESSAGE_V2"


def a_request(code: int = 30, number: int = 1, flag: int = 0, **fields: str) -> LoggedRequest:
    return LoggedRequest(
        LogEntry(number, 0, LoggedConnection("peer:1", "b0"), Command(code, 1, flag, fields=fields))
    )


def standing(*rules: dict[str, Any], seed: int = 1) -> ActiveRules:
    found = ActiveRules(random.Random(seed))
    for number, words in enumerate(rules):
        found.add(Rule(number, *words_of("silence", words), Silence(execute=False), found.remove))
    return found


def first(rules: ActiveRules, request: LoggedRequest) -> int | None:
    rule = rules.first(rules.by_code.get(request.code, rules.for_any_code), request)
    return None if rule is None else rule.id


# -- order and uses


WORDS = st.fixed_dictionaries(
    {},
    optional={
        "code": st.sampled_from([30, "GET_MIN_OFFSET", 30]),
        "topic": st.sampled_from(["a", "b"]),
        "queue_id": st.integers(0, 1),
        "times": st.one_of(st.none(), st.integers(1, 3)),
        "after": st.integers(0, 2),
    },
)
REQUESTS = st.lists(
    st.tuples(st.sampled_from([30, 31]), st.sampled_from(["a", "b"]), st.integers(0, 1)), max_size=30
)


@given(st.lists(WORDS, max_size=5), REQUESTS)
def test_the_first_rule_that_matches_and_has_a_use_left_wins(
    rules: list[dict[str, Any]], requests: list[tuple[int, str, int]]
) -> None:
    found = standing(*rules)
    left = [words.get("times", 1) for words in rules]
    to_pass = [words.get("after", 0) for words in rules]
    for code, topic, queue_id in requests:
        expected = None
        for number, words in enumerate(rules):
            wanted = {30: 30, "GET_MIN_OFFSET": 31, None: code}[words.get("code")]
            if (
                wanted != code
                or words.get("topic", topic) != topic
                or words.get("queue_id", queue_id) != queue_id
            ):
                continue
            if left[number] == 0:
                continue
            if to_pass[number]:
                to_pass[number] -= 1
                continue
            expected = number
            left[number] = None if left[number] is None else left[number] - 1
            break
        assert first(found, a_request(code, topic=topic, queueId=str(queue_id))) == expected


@given(st.lists(st.integers(0, 5), max_size=12))
def test_a_removed_rule_hits_nothing_and_the_others_keep_their_order(removals: list[int]) -> None:
    found = standing(*[{"times": None, "queue_id": number} for number in range(3)], *[{"times": None}] * 3)
    for number in removals:
        found.remove(
            next((rule for rule in found.rules if rule.id == number), found.rules[0] if found.rules else None)
        )
        kept = [rule.id for rule in found.rules]
        for queue_id in range(3):
            expected = next((number for number in kept if number == queue_id or number >= 3), None)
            assert first(found, a_request(queueId=str(queue_id))) == expected


def test_probability_is_that_of_the_seed() -> None:
    def hits(seed: int) -> list[bool]:
        found = standing({"times": None, "probability": 0.3}, seed=seed)
        return [first(found, a_request(number=number)) is not None for number in range(1000)]

    assert hits(1) == hits(1)
    assert hits(1) != hits(2)
    assert 230 < sum(hits(1)) < 370


def test_chance_begins_again_with_the_seed_at_each_reset() -> None:
    def refused(one: RocketMQ) -> list[int]:
        one.faults.refuse(code="GET_MAX_OFFSET", response="SYSTEM_BUSY", probability=0.5, times=None)
        with raw(one.server.broker_addr) as client:
            found = [client.ask(30, topic="t", queueId=0).code for _ in range(30)]
        one.faults.clear()
        one.server.reset()
        return found

    with EmbeddedServer(emulate="5", seed=7) as server:
        one = RocketMQ(server)
        server.reset()
        first = refused(one)
        assert refused(one) == first
        assert 5 < first.count(2) < 25


@pytest.mark.parametrize(
    ("words", "matches"),
    [
        ({}, True),
        ({"group": "g"}, True),
        ({"group": "other"}, False),
        ({"broker": "b0"}, True),
        ({"broker": "b1"}, False),
        ({"oneway": False}, True),
        ({"oneway": True}, False),
        ({"client_id": "c"}, False),
        ({"where": lambda request: request.fields["extra"] == "1"}, True),
        ({"where": lambda request: request.fields["missing"]}, False),
    ],
)
def test_every_word_must_hold(words: dict[str, Any], matches: bool) -> None:
    found = standing(words)
    assert (first(found, a_request(consumerGroup="g", extra="1")) == 0) is matches


def test_a_where_that_raises_fails_the_test() -> None:
    found = standing({"where": lambda request: request.fields["missing"]})
    first(found, a_request())
    assert found.rules[0].errors == ["where raised KeyError: 'missing'"]


# -- sends whose header repeats


def sends(client: Raw, topic: str, count: int, first: int = 0) -> list[int]:
    """Codes of the replies to sends as a producer repeats them."""
    fields = SEND_FIELDS | {"b": topic, "g": 1_700_000_000_000, "m": "false"}
    for number in range(first, first + count):
        unique_id = f"C0000202796B7ED92C9068B1{number:08}"
        properties = f"UNIQ_KEY\x01{unique_id}\x02WAIT\x01true\x02"
        client.send(310, 100 + number, body=b"x", **(fields | {"e": number % 2, "i": properties}))
    return [client.receive().code for _ in range(count)]


def test_a_rule_hits_a_send_whose_header_repeats(one: RocketMQ, client: Raw) -> None:
    """Such sends are not decoded, unless a rule may hit them."""
    orders, others = one.topic("orders", queues=2), one.topic("others", queues=2)
    assert sends(client, orders, 10) == [0] * 10
    one.faults.refuse(code=SEND, topic=orders, queue_id=1, response="SYSTEM_BUSY", times=2)
    assert sends(client, others, 10) == [0] * 10
    assert sends(client, orders, 10, 10) == [0, 2, 0, 2, 0, 0, 0, 0, 0, 0]
    assert sends(client, orders, 4, 20) == [0] * 4, "the rule is used up"
    rule = one.faults.refuse(topic=orders, response="SYSTEM_BUSY", times=None)
    assert sends(client, orders, 3, 24) == [2, 2, 2]
    rule.remove()
    assert sends(client, orders, 3, 27) == [0, 0, 0]
    one.faults.refuse(code=SEND, client_id="c1", response="SYSTEM_BUSY")
    assert sends(client, orders, 2, 30) == [0, 0]
    client.send(34, body=b'{"clientID": "c1"}')
    client.receive()
    assert sends(client, orders, 2, 32) == [2, 0]
    one.faults.silence(code=SEND, topic=orders, queue_id=1)
    client.send(30, topic=orders, queueId=1)
    client.receive()
    assert one.requests.count(code=SEND, topic=orders) == 34
    found = one.requests.find(code=SEND, topic=orders)
    assert [request.response for request in found].count(0) == 34 - 2 - 3 - 1
    assert [request.id for request in one.requests] == sorted(request.id for request in one.requests)


# -- wrong values


WRONG: list[tuple[str, Callable[[RocketMQ], object], str]] = [
    ("name", lambda one: one.faults.refuse(code="SEND"), "code must be the official name .* a request, got 'SEND'"),
    ("near", lambda one: one.faults.refuse(code="PULL_MESAGE"), r"did you mean PULL_MESSAGE"),
    ("minus", lambda one: one.faults.refuse(code=-1), "code must be"),
    ("response", lambda one: one.faults.refuse(response="BUSY"), "response must be .* a reply, got 'BUSY'"),
    ("times", lambda one: one.faults.refuse(times=0), "times must be a whole number of at least 1, got 0"),
    ("times text", lambda one: one.faults.refuse(times="2"), "times must be a whole number"),  # type: ignore[arg-type]
    ("after", lambda one: one.faults.silence(after=-1), "after must be a whole number of at least 0, got -1"),
    ("chance", lambda one: one.faults.silence(probability=1.5), "probability must be a number above 0 and at most 1"),
    ("nan", lambda one: one.faults.delay(seconds=float("nan")), "seconds must be a number of at least 0, got nan"),
    ("seconds", lambda one: one.faults.delay(seconds=-0.5), "seconds must be a number of at least 0, got -0.5"),
    ("jitter", lambda one: one.faults.delay(seconds=1, jitter=-1), "jitter must be a number of at least 0"),
    ("topic", lambda one: one.faults.silence(topic=""), "topic must be a text that is not empty, got ''"),
    ("queue", lambda one: one.faults.silence(queue_id=-1), "queue_id must be a whole number of at least 0, got -1"),
    ("oneway", lambda one: one.faults.silence(oneway="yes"), "oneway must be True or False, got 'yes'"),  # type: ignore[arg-type]
    ("where", lambda one: one.faults.silence(where=3), "where must be a function"),  # type: ignore[arg-type]
    ("execute", lambda one: one.faults.silence(execute="no"), "execute must be True or False"),  # type: ignore[arg-type]
    ("contradiction", lambda one: one.faults.disconnect(execute=False, within_body=True), "execute must not be False"),
    ("no reply", lambda one: one.faults.delay(seconds=1, oneway=True), "a one-way request has no reply"),
    ("nothing", lambda one: one.faults.alter(code=SEND), "alter needs something to change"),
    ("opaque", lambda one: one.faults.alter(opaque=1 << 31), "opaque must be a whole number from"),
    ("fields", lambda one: one.faults.alter(fields=[1]), "fields must map names to values"),  # type: ignore[arg-type]
    ("body", lambda one: one.faults.alter(body=3), "body must be bytes or text"),  # type: ignore[arg-type]
    ("control", lambda one: one.faults.control(SEND, "f"), "control takes a function"),  # type: ignore[arg-type]
    ("no network", lambda one: one.faults.network(), "network needs latency, bandwidth, slice_bytes or half_open"),
    ("latency", lambda one: one.faults.network(latency=-1), "latency must be a number of at least 0, got -1"),
    ("bandwidth", lambda one: one.faults.network(bandwidth=0), "bandwidth must be a whole number of at least 1, got 0"),
    ("both", lambda one: one.faults.network(half_open=True, latency=1), "half_open=True loses every byte"),
    ("broker", lambda one: one.faults.hide_broker("b9"), "name must be one of .*, got 'b9'"),
    ("route", lambda one: one.faults.route("t"), "route needs brokers or queues"),
    ("twice", lambda one: one.faults.route("t", brokers=["x", "x"]), "must not name one twice"),
    ("server", lambda one: one.faults.name_servers_disagree("t", {"n9": []}), "must be one of n0, got 'n9'"),
]  # fmt: skip


@pytest.mark.parametrize(("add", "text"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_a_wrong_value_is_named_with_what_is_allowed(
    one: RocketMQ, add: Callable[[RocketMQ], object], text: str
) -> None:
    with pytest.raises(ValueError, match=text) as refused:
        add(one)
    assert isinstance(refused.value, WrongValueError)
    assert refused.value.allowed
    assert one.faults.rules == []


def test_an_unknown_keyword_is_a_type_error(one: RocketMQ) -> None:
    with pytest.raises(TypeError, match=r"refuse\(\) has no keyword 'topc'; allowed are code, topic"):
        one.faults.refuse(topc="orders")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        one.faults.network(speed=3)  # type: ignore[call-arg]
    assert one.faults.rules == []


# -- the end of a test


def test_a_rule_that_was_never_used_is_named_with_the_nearest_requests(one: RocketMQ, orders: str) -> None:
    one.send(orders, "x")
    one.faults.refuse(code=SEND, topic="ordres", response="SYSTEM_BUSY")
    with pytest.raises(AssertionError) as failed:
        one.faults.check()
    text = str(failed.value)
    assert "refuse(code=SEND_MESSAGE_V2 topic=ordres, response=SYSTEM_BUSY) was never used" in text
    assert "SEND_MESSAGE_V2 topic=orders" in text


def test_a_rule_that_is_used_up_in_part_fails_too(one: RocketMQ, orders: str) -> None:
    one.faults.refuse(code=SEND, times=3)
    with pytest.raises(Refusal):
        one.send(orders, "x")
    with pytest.raises(AssertionError, match="was used 1 of 3 times"):
        one.faults.check()


def test_rules_that_may_stay_unused(one: RocketMQ, orders: str) -> None:
    one.faults.silence(code=11, may_stay_unused=True)
    one.faults.silence(code=11, probability=0.5)
    one.faults.network("nobody", latency=1)
    one.faults.route(orders, queues=1)
    one.faults.hide_broker(one.server.broker.config.broker_name).remove()
    used = one.faults.refuse(code=SEND, times=None)
    with pytest.raises(Refusal):
        one.send(orders, "x")
    one.faults.check()
    used.remove()
    one.send(orders, "y")
    one.faults.clear()
    assert one.faults.rules == []


def test_a_function_may_remove_its_own_rule(one: RocketMQ, orders: str, client: Raw) -> None:

    def once(request: LoggedRequest) -> object:
        rule.remove()
        return DROP

    rule = one.faults.control("GET_MAX_OFFSET", once, times=None)  # type: ignore[arg-type]
    client.send(30, 1, topic=orders, queueId=0)
    client.send(30, 2, topic=orders, queueId=0)
    assert client.receive().opaque == 2
