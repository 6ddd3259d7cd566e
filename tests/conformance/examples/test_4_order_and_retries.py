"""Order examples and the operation example that fails half of what it gets."""

from collections import Counter

from conformance.examples.printed import Received
from conformance.examples.world import FAILING, GROUPS, ORDERLY, ORDERS, ORDERS_TOPIC, QUEUES, World


def test_orders_are_read_back_by_a_consumer_with_options(world: World) -> None:
    world.wait_for_messages(ORDERS, 100)
    messages = world.stop(ORDERS)
    assert sorted(message.properties["KEYS"] for message in messages) == sorted(f"KEY{n}" for n in range(100))
    world.wait_until_equal(lambda: world.committed(ORDERS, ORDERS_TOPIC), world.sizes(ORDERS_TOPIC))


def test_orderly_consumer_keeps_each_queue_in_order_through_suspensions(world: World) -> None:
    # 40 messages since its committed offsets; some are delivered again because the example suspends its queue.
    sizes = world.sizes("TopicTest")
    world.wait_until_equal(lambda: world.committed(ORDERLY, "TopicTest"), sizes, timeout=60)
    messages = world.stop(ORDERLY)
    for queue in QUEUES:
        offsets = [message.offset for message in messages if message.queue == queue]
        assert offsets == sorted(offsets)
        assert set(offsets) == set(range(world.orderly_start[queue], sizes[queue]))
    assert len(messages) > 40, "the example suspends its queue at its fifth message"


def test_every_second_delivery_fails_and_is_retried_until_all_succeed(world: World) -> None:
    # The 2nd, 4th and 6th delivery fail: four messages need seven, whichever they are.
    world.wait_for_messages(FAILING, 7)
    retry_topic = f"%RETRY%{GROUPS[FAILING]}"
    world.wait_until_equal(lambda: world.committed(FAILING, retry_topic, [0]), {0: 3})
    messages = world.stop(FAILING)
    assert len(messages) == 7
    assert world.sizes(retry_topic, [0]) == {0: 3}
    world.wait_until_equal(lambda: sum(world.committed(FAILING, "TopicFailing").values()), 4)
    judge_attempts(
        messages, {answer.ids[0] for answer in world.send_results["operation.Producer for TopicFailing"]}
    )


def judge_attempts(messages: list[Received], keys: set[str]) -> None:
    """Each message's deliveries count up from 0, and all name the message's original topic."""
    assert {message.unique_key for message in messages} == keys
    seen: Counter[str] = Counter()
    for message in messages:
        assert message.topic == "TopicFailing"
        assert message.reconsumed == seen[message.unique_key]
        seen[message.unique_key] += 1
        if message.reconsumed:
            assert message.properties["RETRY_TOPIC"] == "TopicFailing"
