"""A load makes topics, groups and messages; a bad one is one line that names the place."""

from pathlib import Path

import pytest
from pocketmq.testing import EmbeddedServer, LoadError, RocketMQ

GOOD = """
topics:
  orders: 2
  returns: {queues: 1, order: true, attributes: {message.type: FIFO}}
groups: [billing]
messages:
  - {topic: orders, body: order 17, tags: created, keys: [a, b], queue_id: 1, properties: {source: test}}
  - {topic: orders, body: order 18}
  - {topic: returns, body: later, delay_level: 3}
"""


@pytest.fixture
def mq(one: RocketMQ) -> RocketMQ:
    return RocketMQ(one.server, "prefix-")


def test_file_dict_and_function_are_loaded_in_this_order(mq: RocketMQ, tmp_path: Path) -> None:
    path = tmp_path / "state.yml"
    path.write_text(GOOD)
    mq.load(path, {"topics": ["more"]}, lambda rocketmq: rocketmq.send("orders", "by a function"))
    first, second, third = mq.messages("orders")
    assert (first.text, first.tags, first.keys, first.queue_id) == ("order 17", "created", ["a", "b"], 1)
    assert (first.properties["source"], second.text, third.text) == ("test", "order 18", "by a function")
    assert [(one.topic, one.text) for one in mq.delayed] == [("returns", "later")]
    topics = mq.server.broker.topics.topics
    assert (topics["orders"].write_queue_nums, topics["more"].write_queue_nums) == (2, 4)
    assert (topics["returns"].order, topics["returns"].attributes) == (True, {"message.type": "FIFO"})
    assert {"billing"} <= mq.server.broker.groups.groups.keys()
    assert "%RETRY%billing" in topics


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("topics:\n  orders: 1\n  orders: 2\n", r"state\.yml, line 3: orders is named twice"),
        ("groups: [a, b, a]", r"state\.yml: groups: a is named twice"),
        ("topics: [a, a]", r"state\.yml: topics: a is named twice"),
        ("topics: {a: 0}", r"topics: a: queues must be a whole number from 1 to 10000, got 0"),
        ("topics: {a: many}", r"queues must be a whole number from 1 to 10000, got 'many'"),
        ("topics: {a: {queue: 1}}", r"topics: a: unknown word queue, allowed are queues, order, attributes"),
        ("topics: {'a*': 1}", r"illegal characters"),
        ("groups: ['a*']", r"state\.yml: groups: .*illegal characters"),
        ("topic: [a]", r"state\.yml: unknown word topic, allowed are topics, groups, messages"),
        ("messages: [{body: x}]", r"message 1: topic must be a text, got None"),
        (
            "messages: [{topic: a, body: {}}]",
            r"message 1: body must be a text or bytes that are not empty, got \{\}",
        ),
        (
            "messages: [{topic: a, body: x, queue: 1}]",
            r"message 1: unknown word queue, allowed are topic, body",
        ),
        (
            "messages: [{topic: a, body: x, queue_id: -1}]",
            r"queue_id must be a whole number from 0 on, got -1",
        ),
        ("- a\n- b", r"state\.yml must be a map with topics, groups, messages"),
        ("topics: [a", r"state\.yml, line 1: "),
        ("topics: " + "[" * 20_000, r"state\.yml is nested too deeply"),
        ("topics: " + "[" * 150 + "]" * 150, r"topics must be a list of names"),
        ("topics: {a: " + "9" * 5000 + "}", r"state\.yml has a value that cannot be read: "),
        ("topics: {a: 0x" + "9" * 5000 + "}", r"state\.yml has a value that is too long"),
        ("topics: {a: 2026-13-99}", r"state\.yml has a value that cannot be read: month must be in"),
        ("\xff\x00", r"state\.yml"),
    ],
)
def test_bad_file_is_one_line_and_makes_nothing(
    mq: RocketMQ, tmp_path: Path, text: str, complaint: str
) -> None:
    before = set(mq.server.broker.topics.topics)
    path = tmp_path / "state.yml"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(LoadError, match=complaint) as raised:
        mq.load({"topics": ["first"]}, path)
    assert "\n" not in str(raised.value)
    assert set(mq.server.broker.topics.topics) == before


def test_missing_file_and_wrong_kinds_are_one_line(mq: RocketMQ) -> None:
    with pytest.raises(LoadError, match=r"^cannot read no\.yml: No such file or directory$"):
        mq.load("no.yml")
    with pytest.raises(LoadError, match="must be a path, a dict or a function of rocketmq, got 3"):
        mq.load(3)  # type: ignore[arg-type]


def test_message_that_the_broker_refuses_is_named(mq: RocketMQ) -> None:
    with pytest.raises(LoadError, match="message 2 for orders was refused"):
        mq.load(
            {
                "topics": {"orders": 1},
                "messages": [
                    {"topic": "orders", "body": "x"},
                    {"topic": "orders", "body": "x", "queue_id": 7},
                ],
            }
        )


def test_a_server_begins_with_what_functions_of_rocketmq_make() -> None:
    with EmbeddedServer(load=[{"topics": {"orders": 1}}, lambda mq: mq.send("orders", "one")]) as server:
        mq = RocketMQ(server)
        mq.send("orders", "gone")
        server.reset()
        assert [message.text for message in mq.messages("orders")] == ["one"]
        server.load(lambda mq: mq.send("orders", "two"))
        assert [message.text for message in mq.messages("orders")] == ["one", "two"]


def test_an_attribute_that_the_broker_refuses_is_one_line(mq: RocketMQ) -> None:
    with pytest.raises(LoadError, match=r"^load: topic orders: value is not in set: \[.*FIFO"):
        mq.load({"topics": {"orders": {"queues": 1, "attributes": {"message.type": "FOO"}}}})
