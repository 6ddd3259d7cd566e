"""The fixture that tests use: names, sending messages, reading messages and offsets, and waiting for them."""

from collections.abc import Iterator

import pytest
from pocketmq.protocol.message.compression import compress
from pocketmq.testing import EmbeddedServer, RocketMQ, TestingError

from testing_acts import commit, send_request


@pytest.fixture
def mq(server: EmbeddedServer) -> Iterator[RocketMQ]:
    yield RocketMQ(server, "p-")
    server.reset()


def test_names_have_the_prefix_and_exist(mq: RocketMQ) -> None:
    assert (mq.topic("orders", queues=2, order=True), mq.group("billing")) == ("p-orders", "p-billing")
    topic_config = mq.server.broker.topics.topics["p-orders"]
    assert (topic_config.read_queue_nums, topic_config.write_queue_nums, topic_config.order) == (2, 2, True)
    assert "p-billing" in mq.server.broker.groups


@pytest.mark.parametrize("name", ["with blank", "x" * 127, "a/b"])
def test_illegal_name_is_refused(mq: RocketMQ, name: str) -> None:
    for make in (mq.topic, mq.group):
        with pytest.raises(TestingError):
            make(name)


@pytest.mark.parametrize("keys", [["k1", "k2"], ("k1", "k2"), "k1 k2"])
def test_keys_are_a_list_or_a_text(mq: RocketMQ, keys: str | list[str]) -> None:
    topic = mq.topic("orders")
    mq.send(topic, "one", keys=keys)
    assert [message.keys for message in mq.messages(topic)] == [["k1", "k2"]]


@pytest.mark.parametrize("keys", [["k 1"], [""], {"k": 1}, b"k1", [None]])
def test_keys_that_would_arrive_as_others_are_refused(mq: RocketMQ, keys: object) -> None:
    with pytest.raises(ValueError, match=r"^keys"):
        mq.send("orders", "one", keys=keys)  # type: ignore[arg-type]
    assert mq.messages("orders") == []


@pytest.mark.parametrize("name", ["TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"])
def test_a_message_has_one_delay(mq: RocketMQ, name: str) -> None:
    with pytest.raises(ValueError, match=f"^give either delay_level or {name}"):
        mq.send("orders", "one", delay_level=1, properties={name: "3600000"})
    mq.send("orders", "one", delay_level=1, properties={"source": "test"})
    assert [message.text for message in mq.delayed] == ["one"]


def test_messages_are_those_sent_in_the_order_of_arrival(mq: RocketMQ) -> None:
    topic = mq.topic("orders", queues=3)
    mq.send(topic, "größer", tags="created", keys="k1 k2", properties={"colour": "red"})
    for number in range(5):
        mq.send(topic, str(number))
    first, *others = mq.messages(topic)
    assert (first.topic, first.body, first.text) == (topic, "größer".encode(), "größer")
    assert (first.tags, first.keys, first.properties["colour"]) == ("created", ["k1", "k2"], "red")
    assert first.message_id is not None
    assert [message.text for message in others] == ["0", "1", "2", "3", "4"]
    assert [message.queue_id for message in (first, *others)] == [0, 1, 2, 0, 1, 2]
    assert [message.queue_offset for message in (first, *others)] == [0, 0, 0, 1, 1, 1]
    assert (others[0].tags, others[0].keys, others[0].reconsume_times) == (None, [], 0)


def test_message_ids_differ(mq: RocketMQ) -> None:
    for number in range(10):
        mq.send("orders", str(number), queue_id=0)
    assert len({message.message_id for message in mq.messages("orders")}) == 10


def test_compressed_body_is_shown_decompressed(mq: RocketMQ) -> None:
    body, flags = compress(b"x" * 1000, "ZSTD")
    mq.server.request(send_request("packed", sys_flag=flags), body)
    assert mq.messages("packed")[0].body == b"x" * 1000


def test_lag_counts_uncommitted_messages(mq: RocketMQ) -> None:
    topic, group = mq.topic("orders", queues=2), mq.group()
    for number in range(6):
        mq.send(topic, str(number))
    assert (mq.offsets(topic, group), mq.lag(topic, group)) == ({}, 6)
    commit(mq, topic, group, 3)
    assert (mq.offsets(topic, group), mq.lag(topic, group)) == ({0: 3}, 3)
    commit(mq, topic, group, 3, queue_id=1)
    assert mq.lag(topic, group) == 0
    mq.wait_consumed(topic, group)


def test_reading_changes_nothing(mq: RocketMQ) -> None:
    mq.send("orders", "one")
    groups = set(mq.server.broker.groups.groups)
    assert mq.messages("not-there") == []
    assert (mq.offsets("orders", "not-there"), mq.lag("orders", "not-there")) == ({}, 1)
    assert len(mq.messages("orders")) == len(mq.messages("orders")) == 1
    assert "not-there" not in mq.server.broker.topics
    assert set(mq.server.broker.groups.groups) == groups
