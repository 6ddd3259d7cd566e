"""Automatic batches: which messages are sent together, which alone, and that each send gets its own result."""

import asyncio
from datetime import datetime, timedelta

import pytest
from pocketmq.client import Message, MessageQueue, Producer, ProducerSettings, SendResult
from pocketmq.client.errors import ClientError, ValidationFailed
from pocketmq.client.hooks.hooks import SendMessageContext, SendMessageHook
from pocketmq.client.producing.batches import ProduceAccumulator, split_result
from pocketmq.protocol.message.properties import decode_properties

from client_waits import stored

QUEUE = MessageQueue("T", "broker-a", 1)


class Sizes(SendMessageHook):
    """A hook that records how many messages each request has."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, str, int]] = []

    def send_message_after(self, context: SendMessageContext) -> None:
        if context.send_result is not None:
            count = context.send_result.message_id.count(",") + 1
            self.batches.append((context.message.tags, context.message.keys, count))


async def test_simultaneous_sends_are_batched_by_queue_and_tag(namesrv_addr: str) -> None:
    sizes = Sizes()
    async with Producer("p", namesrv_addr=namesrv_addr, auto_batch=True, hooks=[sizes]) as producer:
        sent = await asyncio.gather(
            *(producer.send("T", b"%d" % n, tags="a", keys=f"k{n} all") for n in range(5)),
            *(producer.send_nowait("T", b"%d" % n, tags="b", queue=QUEUE) for n in range(5, 8)),
            producer.send("T", b"8", tags="b", queue_id=1),
            producer.send("T", b"9", delay_level=1),
        )
    by_tag = {tags: (set(keys.split()), count) for tags, keys, count in sizes.batches}
    assert by_tag["a"] == ({"all", *(f"k{n}" for n in range(5))}, 5)
    assert {result.queue for result in sent[5:9]} == {QUEUE}
    assert len(sizes.batches) <= 5
    records = {bytes(record.body): record for record in await stored(namesrv_addr, "T")}
    for number, result in enumerate(sent[:9]):
        record = records[b"%d" % number]
        assert (record.queue_id, record.queue_offset) == (result.queue.queue_id, result.queue_offset)
        assert decode_properties(bytes(record.properties))["UNIQ_KEY"] == result.message_id


async def test_shutdown_sends_waiting_messages(namesrv_addr: str) -> None:
    async with Producer(
        "p", namesrv_addr=namesrv_addr, auto_batch=True, batch_max_delay_ms=30_000
    ) as producer:
        futures = [producer.send_nowait("T", b"x") for _ in range(3)]
    assert len({future.result().message_id for future in futures}) == 3


async def test_an_unsendable_message_fails_alone(namesrv_addr: str) -> None:
    async with Producer("p", namesrv_addr=namesrv_addr, auto_batch=True) as producer:
        good = producer.send_nowait("T", b"x")
        with pytest.raises(ValidationFailed):
            producer.send_nowait("T", b"")
        with pytest.raises(ClientError, match="used by system"):
            await producer.send("T", b"x", properties={"TAGS": "x"})
        assert (await good).message_id


def accumulator(**settings: int) -> tuple[ProduceAccumulator, list[list[bytes]]]:
    """An accumulator whose batches fail or are recorded."""
    sent: list[list[bytes]] = []

    async def send_batch(messages: list[Message], queue: object, tags: str, keys: str) -> SendResult:
        sent.append([message.body for message in messages])
        if tags == "fails":
            raise ClientError("no broker")
        ids = ",".join(str(number) for number in range(len(messages)))
        return SendResult(ids, ids, QUEUE, 10)

    return ProduceAccumulator(ProducerSettings(auto_batch=True, **settings), send_batch), sent  # type: ignore[arg-type]


async def test_a_batch_is_sent_at_its_size_limit_and_waiting_messages_are_limited() -> None:
    waiting, sent = accumulator(batch_max_delay_ms=30_000, batch_max_bytes=10, total_batch_max_bytes=25)
    futures = [waiting.add(Message("T", b"12345"), None, 50) for _ in range(2)]
    assert sent == []
    futures.append(waiting.add(Message("T", b"1"), None, 50))
    assert [(await future).queue_offset for future in futures] == [10, 11, 12]
    assert sent == [[b"12345", b"12345", b"1"]]
    for topic in ("A", "B", "C"):
        assert waiting.accepts(Message(topic, b"1234567890"))
        waiting.add(Message(topic, b"1234567890"), None, 50)
    assert not waiting.accepts(Message("D", b"x")), "30 bytes wait, 25 may"
    await waiting.finish()
    assert waiting.accepts(Message("D", b"x"))


async def test_a_batch_is_no_longer_than_a_message_may_be() -> None:
    waiting, sent = accumulator(batch_max_delay_ms=30_000, max_message_size=100)
    for number in range(5):
        waiting.add(Message("T", b"%d" % number), None, 40)
    await waiting.finish()
    assert sent == [[b"0", b"1"], [b"2", b"3"], [b"4"]]


async def test_a_message_that_fits_only_alone_is_sent_beside_others(namesrv_addr: str) -> None:
    long = bytes(4 * 1024 * 1024 - 10)
    async with Producer(
        "p", namesrv_addr=namesrv_addr, auto_batch=True, batch_max_bytes=2 * 1024 * 1024
    ) as producer:
        bodies = [b"1", b"2", long, b"3"]
        results = await asyncio.gather(*(producer.send("T", body) for body in bodies))
    assert {result.status.value for result in results} == {"SEND_OK"}


async def test_an_error_reaches_every_send_of_the_batch() -> None:
    waiting, _ = accumulator()
    futures = [waiting.add(Message("T", b"x", "fails"), None, 50) for _ in range(3)]
    futures[0].cancel()
    results = await asyncio.gather(*futures, return_exceptions=True)
    assert [type(result) for result in results] == [asyncio.CancelledError, ClientError, ClientError]


@pytest.mark.parametrize(
    "message",
    [
        Message("T", b"x", delay_level=1),
        Message("T", b"x", delay=timedelta(seconds=1)),
        Message("T", b"x", deliver_at=datetime(2030, 1, 1)),
        Message("%RETRY%g", b"x"),
    ],
)
async def test_delayed_and_retry_messages_are_sent_alone(message: Message) -> None:
    assert not accumulator()[0].accepts(message)


def test_results_of_a_batch_stored_as_one_message_are_all_the_same() -> None:
    one = SendResult("A", "a", QUEUE, 7)
    assert split_result(one, 3) == [one] * 3
    with pytest.raises(ClientError, match="sendResult is illegal"):
        split_result(SendResult("A,B", "a,b", QUEUE, 7), 3)
