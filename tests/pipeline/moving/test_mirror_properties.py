"""What a mirror copies of a message: its own properties, and none with a meaning for the broker it came from."""

import asyncio
from collections.abc import Iterator

import pytest
from pocketmq.client import LocalTransactionState, Producer, TransactionProducer
from pocketmq.pipeline.tables import open_topic
from pocketmq.protocol.message.flags import COMPRESSED
from pocketmq.testing import EmbeddedServer, RocketMQ

from pipeline.moving.mirrors import mirror_of, run
from pipeline.topics import filled, give_back


@pytest.fixture(scope="module")
def source() -> Iterator[RocketMQ]:
    """Its clock moves when a test says so."""
    with EmbeddedServer(virtual_time=True) as server:
        yield RocketMQ(server)


def test_only_committed_messages_of_transactions_are_copied_and_as_ordinary_ones(
    rocketmq: RocketMQ, target: RocketMQ
) -> None:
    topic = rocketmq.topic("transactions", queues=1)
    outcomes = [
        LocalTransactionState.COMMIT_MESSAGE,
        LocalTransactionState.ROLLBACK_MESSAGE,
        LocalTransactionState.UNKNOW,
    ]

    async def send() -> None:
        async with TransactionProducer(
            "payers", lambda _: outcomes[2], namesrv_addr=rocketmq.namesrv_addr
        ) as producer:
            for outcome in outcomes:
                await producer.send_in_transaction(
                    topic, outcome.name.encode(), lambda *_, outcome=outcome: outcome, tags="paid", keys="k1"
                )

    asyncio.run(send())
    assert run(mirror_of(rocketmq, target, topic)).lead.startswith("1 messages copied")
    (original,), (copy,) = rocketmq.messages(topic), target.messages(topic)
    assert (copy.text, copy.tags, copy.keys) == ("COMMIT_MESSAGE", "paid", ["k1"])
    assert copy.message_id == original.message_id
    assert "TRAN_MSG" in original.properties
    assert copy.properties.keys().isdisjoint(
        {"TRAN_MSG", "PGROUP", "TRAN_PREPARED_QUEUE_OFFSET", "REAL_TOPIC"}
    )


def test_a_delayed_message_is_copied_once_it_is_due_and_is_not_delayed_again(
    source: RocketMQ, target: RocketMQ
) -> None:
    topic = source.topic("delayed", queues=1)
    source.send(topic, "later", delay_level=3, properties={"color": "red"}, queue_id=0)
    assert run(mirror_of(source, target, topic)).lead.startswith("0 messages copied")
    source.clock.advance("10s")
    assert run(mirror_of(source, target, topic)).lead.startswith("1 messages copied")
    (copy,) = target.messages(topic)
    assert copy.properties["color"] == "red"
    assert copy.properties.keys().isdisjoint({"DELAY", "REAL_TOPIC", "REAL_QID"})


def test_dead_letters_and_retries_keep_their_attempts_and_where_they_came_from(
    source: RocketMQ, target: RocketMQ
) -> None:
    topic, group = filled(source, "failing", 2, tags="A"), source.group("billing")
    for message, level in zip(source.messages(topic), (-1, 0), strict=True):
        give_back(source, message, group, level=level)
    source.clock.advance("10s")
    for kind, text in (("%DLQ%", "m0"), ("%RETRY%", "m1")):
        name = f"{kind}{group}"
        assert run(mirror_of(source, target, name)).lead.startswith("1 messages copied")
        (original,), (copy,) = source.messages(name), target.messages(name)
        assert (copy.text, copy.tags, copy.message_id) == (text, "A", original.message_id)
        assert copy.reconsume_times == original.reconsume_times == 1
        for key in ("RETRY_TOPIC", "ORIGIN_MESSAGE_ID", "DLQ_ORIGIN_TOPIC", "DLQ_ORIGIN_MESSAGE_ID"):
            assert copy.properties.get(key) == original.properties.get(key)
        assert topic in copy.properties.values()
        assert "DELAY" not in copy.properties


def test_compressed_bodies_are_copied_as_they_are_stored(rocketmq: RocketMQ, target: RocketMQ) -> None:
    topic = rocketmq.topic("packed", queues=1)
    bodies = [b"first", b"a" * 8_000_000, b"b" * 5000, b"between", b"c" * 5000, b"last"]

    async def send() -> None:
        async with Producer(
            "packers", namesrv_addr=rocketmq.namesrv_addr, max_message_size=1 << 24
        ) as producer:
            for body in bodies:
                await producer.send(topic, body)

    asyncio.run(send())
    assert run(mirror_of(rocketmq, target, topic)).lead.startswith("6 messages copied")
    columns = "queueOffset,body,bodyCRC,sysFlag"
    rows = [
        open_topic(side.namesrv_addr, topic, columns=columns, decompress=False).read_all().to_pylist()
        for side in (rocketmq, target)
    ]
    assert [row["sysFlag"] & COMPRESSED for row in rows[0]] == [0, 1, 1, 0, 1, 0]
    assert rows[1] == rows[0]
    assert [message.body for message in target.messages(topic)] == bodies
