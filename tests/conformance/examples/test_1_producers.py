"""Producer examples: every send acknowledged, queues filled without a gap, ids that lead back to the message."""

import re

import pytest

from conformance.examples.world import ONEWAY_COUNT, ORDERS_TOPIC, QUEUES, World

STORE_HOST = "7F00000100002A9F"  # 127.0.0.1:10911: how every offset message id here begins


def test_quickstart_producer_fills_four_queues_evenly(world: World) -> None:
    results = world.send_results["quickstart.Producer"]
    assert [answer.status for answer in results] == ["SEND_OK"] * 1000
    assert {(answer.queue, answer.offset) for answer in results} == {
        (q, n) for q in QUEUES for n in range(250)
    }
    assert len({answer.ids for answer in results}) == 1000


def test_offset_message_ids_name_the_store_host_and_growing_positions(world: World) -> None:
    ids = [answer.offset_ids[0] for answer in world.send_results["quickstart.Producer"]]
    assert {name[:16] for name in ids} == {STORE_HOST}
    positions = [int(name[16:], 16) for name in ids]
    assert positions == sorted(set(positions))
    assert positions[0] == 0


def test_simple_producer_appends_after_the_first_one(world: World) -> None:
    results = world.send_results["simple.Producer"]
    assert [answer.status for answer in results] == ["SEND_OK"] * 128
    assert {(answer.queue, answer.offset) for answer in results} == {
        (q, 250 + n) for q in QUEUES for n in range(32)
    }


def test_topic_has_what_was_sent_and_nothing_else(world: World) -> None:
    # All producers of TopicTest send to the queues in turn, each a multiple of four messages.
    assert world.sizes("TopicTest") == dict.fromkeys(QUEUES, world.topic_test_count // 4)


def test_oneway_messages_all_arrive_once(world: World) -> None:
    if not world.sends_oneway:
        pytest.skip("examples 4.7.0 have no simple.OnewayProducer")
    start, count = (1000 + 128) // 4, ONEWAY_COUNT // 4
    stored = [message for queue in QUEUES for message in world.pull("TopicTest", queue, start, count)]
    assert sorted(message.body for message in stored) == sorted(b"Hello RocketMQ %d" % n for n in range(100))


def test_async_producer_gets_every_callback_with_the_stored_id(world: World) -> None:
    output = world.stage.run("simple.AsyncProducer")
    answers = re.findall(r"^(\d+) +(OK|Exception) (\S+)", output, re.MULTILINE)
    assert sorted(int(index) for index, _, _ in answers) == list(range(100))
    assert {verdict for _, verdict, _ in answers} == {"OK"}
    world.wait_until_equal(lambda: sum(world.sizes("Jodie_topic_1023").values()), 100)
    stored = world.pull_all("Jodie_topic_1023")
    assert sorted(message.properties["UNIQ_KEY"] for message in stored) == sorted(
        key for _, _, key in answers
    )


def test_tag_filter_producer_is_acknowledged(world: World) -> None:
    results = world.send_results["filter.TagFilterProducer"]
    assert [answer.status for answer in results] == ["SEND_OK"] * 60
    tags = [message.properties["TAGS"] for message in world.pull_all("TagFilterTest")]
    assert {tag: tags.count(tag) for tag in set(tags)} == {"TagA": 20, "TagB": 20, "TagC": 20}


def test_orders_are_in_the_queue_the_producer_chose_in_the_order_sent(world: World) -> None:
    results = world.send_results["ordermessage.Producer"]
    assert [(answer.status, answer.queue) for answer in results] == [
        ("SEND_OK", n % 10 % 4) for n in range(100)
    ]
    assert world.sizes(ORDERS_TOPIC) == {0: 30, 1: 30, 2: 20, 3: 20}
    stored = world.pull_all(ORDERS_TOPIC)
    expected = [f"KEY{n}" for queue in QUEUES for n in range(100) if n % 10 % 4 == queue]
    assert [message.properties["KEYS"] for message in stored] == expected
