"""A producer against an embedded broker: what is stored, where, and which error each failure gives."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from pocketmq.broker.node import Node
from pocketmq.client import Message, MessageQueue, Producer, SendStatus, select_by_hash
from pocketmq.client.errors import (
    ClientError,
    InvalidArgument,
    NotReachable,
    RequestRefused,
    SendFailed,
    ValidationFailed,
)
from pocketmq.protocol.message.compression import decompress
from pocketmq.protocol.message.flags import COMPRESSED
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.wire.response_codes import ResponseCode

from client_waits import stored


async def test_a_result_names_the_place_of_the_stored_message(namesrv_addr: str, producer: Producer) -> None:
    properties = {"colour": "red", "two lines": "a\nb"}
    result = await producer.send("T", b"hello", tags="a", keys=["k1", "k2"], properties=properties)
    (record,) = await stored(namesrv_addr, "T")
    found = decode_properties(bytes(record.properties))
    assert result.status is SendStatus.SEND_OK
    assert (record.queue_id, record.queue_offset) == (result.queue.queue_id, result.queue_offset)
    assert bytes(record.body) == b"hello"
    assert found["UNIQ_KEY"] == result.message_id
    assert found.items() >= {"TAGS": "a", "KEYS": "k1 k2", **properties}.items()


async def test_messages_are_sent_to_the_queues_in_turn(producer: Producer) -> None:
    results = [await producer.send("T", b"x") for _ in range(8)]
    assert sorted(result.queue.queue_id for result in results) == [0, 0, 1, 1, 2, 2, 3, 3]


async def test_a_queue_of_a_missing_topic_is_found_by_the_template(producer: Producer) -> None:
    queue = MessageQueue("T", "broker-a", 1)
    assert (await producer.send("T", b"the first of all", queue=queue)).queue == queue
    with pytest.raises(SendFailed, match=r"The broker\[broker-z\] not exist"):
        await producer.send("T", b"x", queue=MessageQueue("T", "broker-z", 0))


async def test_arguments_of_another_kind_are_refused_in_words(producer: Producer) -> None:
    wrong: Any = producer  # no type checker lets these pass
    for call, reason in (
        (
            lambda: wrong.send("T", b"x", queue=3),
            "must be a MessageQueue, got 3; the number of a queue is queue_id",
        ),
        (lambda: wrong.send("T", b"x", queue_id="3"), "queue_id must be a whole number, not str"),
        (lambda: wrong.send("T", b"x", selector=3), "selector must be a function, not int"),
        (lambda: wrong.send("T", b"x", sharding_key=b"k"), "must be text or a whole number, not bytes"),
        (lambda: wrong.send("T", b"x", arg="k"), "give a selector, or sharding_key"),
        (lambda: wrong.send("T", b"x", sharding_key="k", arg=3), "give a selector, or sharding_key"),
        (lambda: wrong.send("T", b"x", timeout_ms="3000"), "timeout_ms must be milliseconds"),
        (lambda: wrong.send("T", b"x", timeout_ms=float("nan")), "timeout_ms must be milliseconds"),
        (lambda: wrong.send_batch([b"x"]), "a member of messages must be Message, not bytes"),
        (lambda: wrong.reply("who?", b"x"), "question must be MessageExt, not str"),
        (lambda: wrong.resend(Message("T", b"x")), "message must be MessageExt, not Message"),
    ):
        with pytest.raises(InvalidArgument, match=reason):
            await call()


async def test_a_selector_keeps_equal_arguments_in_one_queue(producer: Producer) -> None:
    await producer.send("T", b"x")
    results = [await producer.send("T", b"x", selector=select_by_hash, arg="order-7") for _ in range(4)]
    given = await producer.send("T", b"x", queue_id=2)
    with pytest.raises(SendFailed, match="topic T has no queue 99 to write to"):
        await producer.send("T", b"x", queue_id=99)
    assert len({result.queue for result in results}) == 1
    assert given.queue.queue_id == 2


async def test_a_sharding_key_is_the_official_selector_by_hash(producer: Producer) -> None:
    await producer.send("T", b"x")
    for key in ("order-7", "order-8", 7):
        by_key = await producer.send("T", b"x", sharding_key=key)
        by_selector = await producer.send("T", b"x", selector=select_by_hash, arg=key)
        assert by_key.queue == by_selector.queue


async def test_futures_get_results_and_share_the_connection(namesrv_addr: str, producer: Producer) -> None:
    first = await producer.send_nowait("T", b"0")  # nothing is connected yet
    results = await asyncio.gather(*(producer.send_nowait("T", b"%d" % n) for n in range(1, 200)))
    assert len({result.message_id for result in (first, *results)}) == 200
    assert len(await stored(namesrv_addr, "T")) == 200


async def test_futures_can_name_their_queue_even_if_the_topic_is_not_known_yet(namesrv_addr: str) -> None:
    queues_of: dict[str, list[MessageQueue]] = {}
    for topic in ("First", "Second"):
        async with Producer("p", namesrv_addr=namesrv_addr) as producer:
            futures = [
                producer.send_nowait(topic, b"x", selector=select_by_hash, arg="order-7") for _ in range(4)
            ]
            if topic == "First":
                await asyncio.gather(*futures)
            futures.append(producer.send_nowait(topic, b"x", selector=select_by_hash, arg="order-7"))
            futures.append(producer.send_nowait(topic, b"x", queue_id=2))
            nowhere = producer.send_nowait("Third", b"x", queue_id=99)  # shutdown waits for it too
        queues_of[topic] = [future.result().queue for future in futures]
        assert isinstance(nowhere.exception(), SendFailed)
    for topic, queues in queues_of.items():
        assert {queue.topic for queue in queues} == {topic}
        assert len(set(queues[:5])) == 1
        assert queues[5].queue_id == 2


async def test_futures_under_back_pressure_are_all_sent(namesrv_addr: str) -> None:
    async with Producer(
        "p",
        namesrv_addr=namesrv_addr,
        enable_backpressure_for_async_mode=True,
        back_pressure_for_async_send_num=10,
    ) as producer:
        await asyncio.gather(*(producer.send_nowait("T", b"%d" % n) for n in range(100)))
    assert len(await stored(namesrv_addr, "T")) == 100


async def test_a_batch_longer_than_the_limit_is_split_and_keeps_its_order(namesrv_addr: str) -> None:
    messages = [Message("T", b"%04d" % n * 50, tags="t", keys=f"k{n}") for n in range(100)]
    async with Producer("p", namesrv_addr=namesrv_addr, max_message_size=4000) as producer:
        first = await producer.send("T", b"first", queue_id=0)
        results = await producer.send_batch(messages, queue=first.queue)
    ids = [one for result in results for one in result.message_id.split(",")]
    records = (await stored(namesrv_addr, "T"))[1:]
    assert len(results) > 5
    assert [bytes(record.body) for record in records] == [message.body for message in messages]
    assert [decode_properties(bytes(record.properties))["UNIQ_KEY"] for record in records] == ids


@pytest.mark.parametrize("compress_type", ["ZLIB", "LZ4", "ZSTD"])
async def test_long_bodies_are_sent_compressed(namesrv_addr: str, compress_type: str) -> None:
    body = b"abc" * 2000
    async with Producer("p", namesrv_addr=namesrv_addr, compress_type=compress_type) as producer:
        await producer.send("T", body)
    (record,) = await stored(namesrv_addr, "T")
    assert record.sys_flag & COMPRESSED
    assert len(record.body) < len(body) / 10
    assert bytes(decompress(record.body, record.sys_flag)) == body


@pytest.mark.parametrize(
    ("topic", "body", "words"),
    [
        ("T", b"", "the message body length is zero"),
        ("T", b"x" * 101, "the message body size over max value, MAX: 100"),
        ("a b", b"x", "illegal characters"),
        ("SCHEDULE_TOPIC_XXXX", b"x", "is forbidden"),
    ],
)
async def test_messages_that_every_broker_refuses_are_not_sent(
    namesrv_addr: str, topic: str, body: bytes, words: str
) -> None:
    async with Producer("p", namesrv_addr=namesrv_addr, max_message_size=100) as producer:
        with pytest.raises(ValidationFailed, match=words):
            await producer.send(topic, body)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"properties": {"colour": " "}}, "The name or value of property can not be null or blank string!"),
        ({"properties": {"": "red"}}, "The name or value of property can not be null or blank string!"),
        ({"properties": {"size": 7}}, "the property size must be text, not int"),
        ({"properties": {"colour": "red\x02KEYS\x01stolen"}}, "must not contain U.0001 or U.0002"),
        ({"properties": {"a\x01b": "c"}}, "must not contain U.0001 or U.0002"),
        ({"tags": "a\x02"}, "tags must not contain U.0001 or U.0002"),
        ({"tags": 5}, "tags must be text, not int"),
        ({"keys": ["a", "b\x02c"]}, "keys must not contain U.0001 or U.0002"),
    ],
)
async def test_values_that_would_arrive_changed_are_refused(
    producer: Producer, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(ClientError, match=words):
        await producer.send("T", b"x", **given)


async def test_a_queue_of_another_topic_is_refused(namesrv_addr: str) -> None:
    other = MessageQueue("Other", "broker-a", 0)
    async with Producer("p", namesrv_addr=namesrv_addr, namespace="blue") as producer:
        for send in (
            lambda: producer.send("T", b"x", queue=other),
            lambda: producer.send_oneway("T", b"x", queue=other),
            lambda: producer.send_batch([Message("T", b"x"), Message("T", b"y")], queue=other),
        ):
            with pytest.raises(ClientError, match=r"^message's topic not equal mq's topic$"):
                await send()
        with pytest.raises(ClientError, match=r"^message's topic not equal mq's topic$"):
            producer.send_nowait("T", b"x", queue=other)
        queue = (await producer.send("T", b"x")).queue
        assert (await producer.send("T", b"x", queue=queue)).queue == queue


async def test_without_any_server_start_succeeds_and_sends_fail() -> None:
    async with Producer("p", namesrv_addr="127.0.0.1:1") as producer:
        with pytest.raises(SendFailed, match="No route info of this topic: T; cannot connect to") as failed:
            await producer.send("T", b"x")
    assert isinstance(failed.value.__cause__, NotReachable)
    assert failed.value.retriable


async def test_one_instance_name_shares_one_connection_and_refuses_a_second_of_one_group(node: Node) -> None:
    async with (
        Producer("a", namesrv_addr=node.namesrv_address, instance_name="shared") as first,
        Producer("b", namesrv_addr=node.namesrv_address, instance_name="shared") as second,
    ):
        await first.send("T", b"x")
        await second.send("T", b"x")
        assert first.client_id == second.client_id
        assert first.client_id.endswith("@shared")
        with pytest.raises(ClientError, match="has been created before"):
            await Producer("a", namesrv_addr=node.namesrv_address, instance_name="shared").start()


async def test_a_message_too_long_for_the_broker_is_refused_with_its_code(namesrv_addr: str) -> None:
    """The client's own limit is set higher than the broker's 4 MiB; the last body is longer than any frame may be."""
    async with Producer(
        "p", namesrv_addr=namesrv_addr, max_message_size=64 << 20, compress_msg_body_over_howmuch=1 << 30
    ) as producer:
        await producer.send("T", b"x")
        with pytest.raises(SendFailed) as failed:
            await producer.send("T", bytes(5 << 20), timeout_ms=30_000)
        assert failed.value.code == ResponseCode.MESSAGE_ILLEGAL
        with pytest.raises(SendFailed) as refused:
            await producer.send_nowait("T", bytes(5 << 20), timeout_ms=30_000)
        assert refused.value.code == ResponseCode.MESSAGE_ILLEGAL
        assert isinstance(refused.value.__cause__, RequestRefused)
        with pytest.raises(ClientError):
            await producer.send("T", bytes(17 << 20), timeout_ms=30_000)
        assert (await producer.send("T", b"x")).queue_offset >= 0


async def test_ids_of_the_producers_of_one_process_differ(namesrv_addr: str) -> None:
    """Java counts for all producers of a process together."""
    producers = [Producer(f"ids-{number}", namesrv_addr=namesrv_addr) for number in range(4)]
    ids: list[str] = []
    async with AsyncExitStack() as stack:
        for producer in producers:
            await stack.enter_async_context(producer)
        for _ in range(20):
            results = await asyncio.gather(*(producer.send("Orders", b"x") for producer in producers))
            ids += [result.message_id for result in results]
    assert len(set(ids)) == len(ids)
