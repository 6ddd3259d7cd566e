"""Batch examples: one request with many messages, each stored as a message of its own."""

import re

from conformance.examples.printed import sent
from conformance.examples.stored import Stored, stored
from conformance.examples.world import QUEUES, World

QUERY_MESSAGE = 12
TOPIC = "BatchTest"
SPLIT_COUNT = 100_000


def test_simple_batch_is_three_messages_in_a_row(world: World) -> None:
    before = world.sizes(TOPIC)
    output = world.stage.run("batch.SimpleBatchProducer")
    world.wait_until_equal(lambda: sum(world.sizes(TOPIC).values()), sum(before.values()) + 3)
    after = world.sizes(TOPIC)
    grown = {queue: after[queue] - before[queue] for queue in QUEUES if after[queue] != before[queue]}
    assert list(grown.values()) == [3]
    (queue,) = grown
    messages = world.pull(TOPIC, queue, before[queue])
    assert [(message.offset - before[queue], message.body) for message in messages] == [
        (n, b"Hello world %d" % n) for n in range(3)
    ]
    assert [message.properties["KEYS"] for message in messages] == ["OrderID001", "OrderID002", "OrderID003"]
    if world.client == "5.5":  # examples 4.7.0 do not print it
        (result,) = sent(output)
        assert (result.queue, result.offset) == (queue, before[queue])
        stored_keys = [message.properties["UNIQ_KEY"] for message in messages]
        if world.server.emulates == "4.9":
            # 4.9 adds the batch's properties to each message's, so the batch's key hides the printed one.
            assert len(set(stored_keys)) == 1
            assert stored_keys[0] not in result.ids
        else:
            assert stored_keys == list(result.ids)
        assert [int(name[16:], 16) for name in result.offset_ids] == [
            message.position for message in messages
        ]


def test_split_batch_stores_a_hundred_thousand_messages_in_order(world: World) -> None:
    before = world.sizes(TOPIC)
    output = world.stage.run("batch.SplitBatchProducer", timeout=120)
    assert "Exception" not in output
    wanted = sum(before.values()) + SPLIT_COUNT
    world.wait_until_equal(
        lambda: sum(world.sizes(TOPIC).values()), wanted
    )  # the official broker fills the queues after it has answered
    after = world.sizes(TOPIC)
    for queue in QUEUES:
        # The queues get chunks in turn: numbers only grow within a queue and are consecutive in a chunk.
        places = range(before[queue], after[queue], max(1, (after[queue] - before[queue]) // 40))
        numbers = [number(message.body) for place in places for message in world.pull(TOPIC, queue, place, 1)]
        assert len(numbers) == len(places)
        assert numbers == sorted(set(numbers))
    found = [message for n in (0, 54_321, SPLIT_COUNT - 1) for message in by_key(world, f"OrderID{n}")]
    assert [message.body for message in found] == [
        b"Hello world 0",
        b"Hello world 54321",
        b"Hello world 99999",
    ]


def number(body: bytes) -> int:
    matched = re.fullmatch(rb"Hello world (\d+)", body)
    assert matched is not None
    return int(matched[1])


def by_key(world: World, key: str) -> list[Stored]:
    reply = world.ask(QUERY_MESSAGE, topic=TOPIC, key=key, maxNum=32, beginTimestamp=0, endTimestamp=1 << 60)
    return list(stored(reply.body))
