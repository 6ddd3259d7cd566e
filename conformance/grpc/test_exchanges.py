"""Exchanges of several requests, with the same answers of our endpoint and of the official proxy."""

import asyncio
import contextlib
import itertools
import time
from typing import Any

import h2.exceptions
import msgspec
import pytest
from pocketmq.grpc_endpoint.messages import (
    AckMessageEntry,
    AckMessageRequest,
    ClientType,
    Code,
    CustomizedBackoff,
    Duration,
    Encoding,
    EndTransactionRequest,
    ExponentialBackoff,
    FilterExpression,
    FilterType,
    HeartbeatRequest,
    Message,
    MessageQueue,
    MessageType,
    Metric,
    NotifyClientTerminationRequest,
    ReceiveMessageRequest,
    Resource,
    RetryPolicy,
    SendMessageRequest,
    Settings,
    Status,
    TelemetryCommand,
    Timestamp,
    TransactionResolution,
    TransactionSource,
    VerifyMessageResult,
)

from conformance.grpc.announcing import announced, consumer, producer
from conformance.grpc.rows import PX, message, send, topic
from conformance.servers.raw_client import RawClient
from conformance.servers.server import Server
from grpc_client import ClientCall, GrpcClient, RpcError

STEPS = (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
numbers = itertools.count(1)


def new_id() -> str:
    return f"01AABBCCDDEEFF{next(numbers):020d}"


async def settled(client: GrpcClient, settings: Settings, client_id: str = "s@1@0@a") -> Any:
    """The reply to settings. Raises `RpcError` if they are refused."""
    stream = client.open("Telemetry", client_id=client_id)
    stream.send(TelemetryCommand(settings=settings))
    reply = await stream.next(20)
    with contextlib.suppress(h2.exceptions.StreamClosedError):
        stream.half_close()
    return reply


# -- settings


async def test_settings_of_a_producer(client: GrpcClient) -> None:
    sent = producer("NormalT", "NoSuchT")
    assert sent.publishing is not None
    reply = await settled(client, sent)
    assert (reply.status.code, reply.status.message) == (Code.OK, "OK")
    assert reply.settings == msgspec.structs.replace(
        sent,
        backoff_policy=RetryPolicy(
            max_attempts=3,
            exponential_backoff=ExponentialBackoff(
                initial=Duration.of_ms(10), max=Duration.of_ms(1000), multiplier=2.0
            ),
        ),
        publishing=msgspec.structs.replace(
            sent.publishing, max_body_size=4_194_304, validate_message_type=True
        ),
        metric=Metric(),
    )


@pytest.mark.parametrize("kind", [ClientType.PUSH_CONSUMER, ClientType.SIMPLE_CONSUMER])
async def test_settings_of_a_consumer(client: GrpcClient, kind: ClientType) -> None:
    sent = consumer("g2", "NormalT", kind=kind)
    assert sent.subscription is not None
    reply = await settled(client, sent)
    assert reply.settings == msgspec.structs.replace(
        sent,
        backoff_policy=RetryPolicy(
            max_attempts=17,
            customized_backoff=CustomizedBackoff(next=[Duration(seconds=step) for step in STEPS]),
        ),
        subscription=msgspec.structs.replace(
            sent.subscription,
            fifo=False,
            receive_batch_size=32,
            long_polling_timeout=Duration(seconds=20),
            lite_subscription_quota=2000,
            max_lite_topic_size=64,
        ),
        metric=Metric(),
    )


FAILED = "process client telemetryCommand failed. "


@pytest.mark.parametrize(
    ("settings", "language", "status", "text"),
    [
        (producer("a.b"), "JAVA", 3, FAILED + "The specified topic[a.b] contains illegal characters"),
        (producer("TBW102"), "JAVA", 3, FAILED + "cannot access system topic"),
        (consumer("g.h"), "JAVA", 3, FAILED + "the specified group[g.h] contains illegal characters"),
        (consumer("nobodys"), "JAVA", 3, FAILED + "group not found: nobodys"),
        (
            consumer("g2", "NormalT", expression=FilterExpression(type=FilterType.TAG, expression="||")),
            "JAVA",
            3,
            FAILED + "expression format is not correct",
        ),
        (
            consumer("g2", "NormalT", kind=ClientType.PULL_CONSUMER),
            "JAVA",
            13,
            FAILED + "Client type is not consumer, type: PULL_CONSUMER",
        ),
        (
            consumer("g2", "NormalT", kind=ClientType.LITE_PUSH_CONSUMER),
            "JAVA",
            3,
            FAILED + "regular group cannot use LITE mode: g2",
        ),
        (
            producer("NormalT"),
            "KLINGON",
            13,
            FAILED + "No enum constant org.apache.rocketmq.remoting.protocol.LanguageCode.KLINGON",
        ),
        (Settings(), "JAVA", 3, "there is no publishing or subscription data in settings"),
    ],
)
async def test_refused_settings(
    client: GrpcClient, settings: Settings, language: str, status: int, text: str
) -> None:
    stream = client.open("Telemetry", client_id="r@1@0@a", x_mq_language=language)
    stream.send(TelemetryCommand(settings=settings))
    with pytest.raises(RpcError) as refused:
        await stream.next(20)
    assert refused.value.status == status
    assert refused.value.text.startswith(text)


async def test_blank_client_id(client: GrpcClient) -> None:
    reply = await settled(client, producer("NormalT"), client_id="")
    assert reply.status == Status(code=Code.CLIENT_ID_REQUIRED, message="client id cannot be empty")


async def test_command_without_content_is_ignored(client: GrpcClient) -> None:
    stream = client.open("Telemetry", client_id="e@1@0@a")
    stream.send(TelemetryCommand())
    stream.send(TelemetryCommand(settings=producer("NormalT")))
    assert (await stream.next(20)).status.code == Code.OK
    stream.half_close()
    assert await stream.next(20) is None


# -- a client's life


async def test_life_of_a_consumer(client: GrpcClient, side: Server) -> None:
    await settled(client, consumer("g3", "NormalT"), "l@1@0@a")
    group = Resource(name="g3")
    beat = HeartbeatRequest(group=group, client_type=ClientType.PUSH_CONSUMER)
    assert (await client.ask(beat, client_id="l@1@0@a")).status.code == Code.OK
    blank = await client.ask(HeartbeatRequest(client_type=ClientType.PUSH_CONSUMER), client_id="l@1@0@a")
    assert (blank.status.code, blank.status.message) == (
        Code.ILLEGAL_CONSUMER_GROUP,
        "the specified group is blank",
    )
    with RawClient(side) as raw:
        seen = raw.call(203, consumerGroup="g3")
        assert b'"clientId":"l@1@0@a"' in seen.body
        for text in (b'"language":"JAVA"', b'"version":513', b"CONSUME_PASSIVELY", b"CLUSTERING"):
            assert text in seen.body
        end = NotifyClientTerminationRequest(group=group)
        assert (await client.ask(end, client_id="l@1@0@a")).status.code == Code.OK
        gone = raw.call(203, consumerGroup="g3")
        assert (gone.code, gone.remark) == (206, "the consumer group[g3] not online")
    again = await client.ask(beat, client_id="l@1@0@a")
    assert again.status.code == Code.UNRECOGNIZED_CLIENT_TYPE


async def test_life_of_a_producer(client: GrpcClient, side: Server) -> None:
    await settled(client, producer("PriorityT"), "p@1@0@a")
    with RawClient(side) as raw:
        assert b'"clientId":"p@1@0@a"' in raw.call(204, producerGroup="PriorityT").body
        beat = HeartbeatRequest(client_type=ClientType.PRODUCER)
        assert (await client.ask(beat, client_id="p@1@0@a")).status.code == Code.OK
        end = NotifyClientTerminationRequest()
        assert (await client.ask(end, client_id="p@1@0@a")).status.code == Code.OK
        gone = raw.call(204, producerGroup="PriorityT")
        assert (gone.code, gone.remark) == (1, "the producer group[PriorityT] not exist")


# -- sends


def stored(server: Server, name: str, queue_id: int, offset: int) -> str:
    """The properties of a stored message, readable."""
    with RawClient(server) as raw:
        reply = raw.call(
            11,
            consumerGroup="reader",
            topic=name,
            queueId=queue_id,
            queueOffset=offset,
            maxMsgNums=1,
            sysFlag=4,
            commitOffset=0,
            suspendTimeoutMillis=0,
            subscription="*",
            subVersion=0,
            expressionType="TAG",
        )
    assert reply.code == 0, reply
    return _text(reply.body)


def _text(record: bytes) -> str:
    body_size = int.from_bytes(record[84:88], "big")
    at = 88 + body_size
    at += 1 + record[at]
    size = int.from_bytes(record[at : at + 2], "big")
    return record[at + 2 : at + 2 + size].decode().replace("\x01", "=").replace("\x02", ";")


ENDING = "__BORNHOST=myhost;BORN_TIMESTAMP=1790000000005;TRACE_ON=true;"


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (
            message(born_timestamp=Timestamp.of_ms(1_790_000_000_005)),
            "MSG_REGION=DefaultRegion;UNIQ_KEY={id};CLUSTER=DefaultCluster;PGROUP=OneT;RECONSUME_TIME=0;"
            + ENDING,
        ),
        (
            message(
                user={"u": "1", "Ü": "ö", "a": "b"},
                tag="A",
                keys=["k1", "k2"],
                trace_context="tc",
                body_encoding=Encoding.GZIP,
                delivery_attempt=3,
                born_timestamp=Timestamp.of_ms(1_790_000_000_005),
            ),
            None,
        ),
    ],
    ids=["plain", "full"],
)
async def test_stored_properties(client: GrpcClient, side: Server, of: Message, text: str | None) -> None:
    message_id = new_id()
    sent = msgspec.structs.replace(
        of,
        topic=topic("OneT"),
        system_properties=msgspec.structs.replace(of.system_properties, message_id=message_id),
    )
    reply = await client.ask(send(sent), seconds=20)
    (entry,) = reply.entries
    assert (reply.status.code, entry.status.code) == (Code.OK, Code.OK)
    assert (entry.message_id, entry.transaction_id, entry.recall_handle) == (message_id, message_id, "")
    got = stored(side, "OneT", 0, entry.offset)
    if text is not None:
        assert got == text.format(id=message_id)
    else:
        assert dict(pair.split("=", 1) for pair in got.split(";") if pair) == {
            "MSG_REGION": "DefaultRegion",
            "UNIQ_KEY": message_id,
            "CLUSTER": "DefaultCluster",
            "PGROUP": "OneT",
            "RECONSUME_TIME": "3",
            "__BORNHOST": "myhost",
            "BORN_TIMESTAMP": "1790000000005",
            "TRACE_ON": "true",
            "TAGS": "A",
            "KEYS": "k1 k2",
            "TRACE_CONTEXT": "tc",
            "u": "1",
            "Ü": "ö",
            "a": "b",
        }
        FULL.setdefault("text", got.replace(message_id, "ID"))
        assert got.replace(message_id, "ID") == FULL["text"]


FULL: dict[str, str] = {}
"""The order of the stored properties, which must be that of the other side."""


@pytest.mark.parametrize(
    ("group", "queue_id"), [("mg", 2), ("b", 5), ("order-1", 3), ("组", 2), ("x0123456789", 2)]
)
async def test_queue_of_a_message_group(client: GrpcClient, side: Server, group: str, queue_id: int) -> None:
    message_id = new_id()
    reply = await client.ask(send(message("FifoT", message_id=message_id, message_group=group)), seconds=20)
    assert f"UNIQ_KEY={message_id};" in stored(side, "FifoT", queue_id, reply.entries[0].offset)


async def test_batch_has_one_receipt(client: GrpcClient, side: Server) -> None:
    ids = [new_id() for _ in range(3)]
    reply = await client.ask(send(*(message("OneT", message_id=one) for one in ids)), seconds=20)
    (entry,) = reply.entries
    assert (entry.transaction_id, len(entry.message_id)) == (ids[0], 32)
    texts = [stored(side, "OneT", 0, entry.offset + number) for number in range(3)]
    assert [f"UNIQ_KEY={one};" in text for one, text in zip(ids, texts, strict=True)] == [True] * 3
    assert "TAGS=;" in texts[1]
    assert "MSG_REGION" not in texts[1]
    order = [pair.partition("=")[0] for pair in texts[1].split(";")]
    assert order == BATCH.setdefault("order", order)


BATCH: dict[str, list[str]] = {}


@pytest.mark.parametrize("priority", [0, 2, 9])
async def test_priority_is_the_queue(client: GrpcClient, side: Server, priority: int) -> None:
    message_id = new_id()
    reply = await client.ask(send(message("PriorityT", message_id=message_id, priority=priority)), seconds=20)
    text = stored(side, "PriorityT", min(priority, 3), reply.entries[0].offset)
    assert f"UNIQ_KEY={message_id};" in text


async def test_recall_handle_of_a_timed_message(client: GrpcClient) -> None:
    now_ms = int(time.time() * 1000)
    due = Timestamp.of_ms(now_ms + 3_600_000)
    reply = await client.ask(send(message("DelayT", message_id=new_id(), delivery_timestamp=due)), seconds=20)
    assert reply.entries[0].recall_handle
    past = Timestamp.of_ms(now_ms - 1000)
    reply = await client.ask(
        send(message("DelayT", message_id=new_id(), delivery_timestamp=past)), seconds=20
    )
    assert reply.entries[0].recall_handle == ""


# -- receives


def receive(name: str, group: str, **more: Any) -> ReceiveMessageRequest:
    return ReceiveMessageRequest(
        group=Resource(name=group),
        message_queue=MessageQueue(topic=topic(name), id=-1),
        filter_expression=FilterExpression(type=FilterType.TAG, expression="*"),
        batch_size=32,
        **{"invisible_duration": Duration(seconds=30), **more},
    )


async def received(client: GrpcClient, request: ReceiveMessageRequest, client_id: str) -> list[Any]:
    call = client.open("ReceiveMessage", request, client_id=client_id, timeout="12S")
    return [reply async for reply in _slowly(call)]


async def _slowly(call: ClientCall) -> Any:
    while (reply := await call.next(25)) is not None:
        yield reply


async def test_received_message_and_its_ack(client: GrpcClient) -> None:
    me, message_id = "a@1@0@a", new_id()
    async with announced(client, consumer("simple", "MoreReadT", kind=ClientType.SIMPLE_CONSUMER), me):
        sent = message(
            "MoreReadT",
            b"hello",
            {"u": "1"},
            message_id=message_id,
            tag="A",
            keys=["k1", "k2"],
            trace_context="tc",
        )
        assert (await client.ask(send(sent), seconds=20)).status.code == Code.OK
        first, second, last = await received(client, receive("MoreReadT", "simple"), me)
        assert first.status == Status(code=Code.OK, message="OK")
        assert last.delivery_timestamp is not None
        got = second.message
        system = got.system_properties
        handle = system.receipt_handle.split(" ")
        assert (len(handle), handle[2], handle[5]) == (9, "30000", "broker-a")
        assert (got.topic.name, got.body, got.user_properties) == (
            "MoreReadT",
            b"hello",
            {"u": "1", "TRACE_CONTEXT": "tc"},
        )
        assert (system.tag, list(system.keys), system.message_id) == ("A", ["k1", "k2"], message_id)
        assert system.body_digest.checksum == "5D41402ABC4B2A76B9719D911017C592"
        assert (system.message_type, system.body_encoding) == (MessageType.NORMAL, Encoding.IDENTITY)
        assert (system.delivery_attempt, system.queue_offset) == (1, int(handle[7]))
        entry = AckMessageEntry(message_id=message_id, receipt_handle=system.receipt_handle)
        ack = AckMessageRequest(group=Resource(name="simple"), topic=topic("MoreReadT"), entries=[entry])
        for _ in range(2):
            reply = await client.ask(ack, client_id=me)
            assert reply.status == Status(code=Code.OK, message="OK")
            assert [(one.message_id, one.status.code) for one in reply.entries] == [(message_id, Code.OK)]
        wrong = msgspec.structs.replace(ack, entries=[entry, AckMessageEntry(receipt_handle="H")])
        assert (await client.ask(wrong, client_id=me)).status == Status(
            code=Code.MULTIPLE_RESULTS, message="MULTIPLE_RESULTS"
        )


async def test_empty_receive(client: GrpcClient) -> None:
    me = "b@1@0@a"
    async with announced(client, consumer("simple", "ReadT", kind=ClientType.SIMPLE_CONSUMER), me):
        start = time.monotonic()
        first, last = await received(
            client, receive("ReadT", "simple", long_polling_timeout=Duration(seconds=1)), me
        )
        assert first.status == Status(code=Code.MESSAGE_NOT_FOUND, message="no new message")
        assert last.delivery_timestamp is not None
        assert 4.5 < time.monotonic() - start < 8


@pytest.mark.parametrize(
    ("more", "code", "text"),
    [
        (
            {"invisible_duration": Duration(seconds=9)},
            Code.ILLEGAL_INVISIBLE_TIME,
            "the invisibleTime is too small. min is 10000",
        ),
        (
            {"invisible_duration": Duration(seconds=43_201)},
            Code.ILLEGAL_INVISIBLE_TIME,
            "the invisibleTime is too large. max is 43200000",
        ),
        (
            {"filter_expression": FilterExpression(type=FilterType.TAG, expression="||")},
            Code.ILLEGAL_FILTER_EXPRESSION,
            None,
        ),
    ],
)
async def test_refused_receive(
    client: GrpcClient, more: dict[str, Any], code: Code, text: str | None
) -> None:
    me = "c@1@0@a"
    async with announced(client, consumer("simple", "ReadT", kind=ClientType.SIMPLE_CONSUMER), me):
        request = msgspec.structs.replace(receive("ReadT", "simple"), **more)
        first, last = await received(client, request, me)
        assert first.status.code == code
        assert first.status.message == (first.status.message if text is None else text)
        assert last.delivery_timestamp is not None


async def test_deadline_too_short_for_a_poll(client: GrpcClient) -> None:
    me = "d@1@0@a"
    async with announced(client, consumer("simple", "ReadT", kind=ClientType.SIMPLE_CONSUMER), me):
        call = client.open("ReceiveMessage", receive("ReadT", "simple"), client_id=me, timeout="3S")
        first = await call.next(20)
        assert first.status == Status(
            code=Code.ILLEGAL_POLLING_TIME,
            message="The deadline time remaining is not enough for polling, please check network condition",
        )


# -- transactions and questions


def end(message_id: str, resolution: TransactionResolution) -> EndTransactionRequest:
    return EndTransactionRequest(
        topic=topic("TransT"),
        message_id=message_id,
        transaction_id=message_id,
        resolution=resolution,
        source=TransactionSource.SOURCE_CLIENT,
    )


def half(message_id: str) -> SendMessageRequest:
    return send(
        message(
            "TransT",
            message_id=message_id,
            message_type=MessageType.TRANSACTION,
            born_timestamp=Timestamp.of_ms(int(time.time() * 1000)),
        )
    )


async def test_ends_of_transactions(client: GrpcClient) -> None:
    lost = Status(code=Code.INTERNAL_SERVER_ERROR, message=PX + "cannot found transaction data")
    for resolution in TransactionResolution:
        message_id = new_id()
        reply = await client.ask(half(message_id), seconds=20)
        assert reply.entries[0].transaction_id == message_id
        assert (await client.ask(end(message_id, resolution))).status == Status(code=Code.OK, message="OK")
        assert (await client.ask(end(message_id, resolution))).status == lost


async def test_message_is_consumed_directly(client: GrpcClient, side: Server) -> None:
    me, message_id = "v@1@0@a", new_id()
    with RawClient(side) as raw:
        offset_id = raw.send("OneT", 0, b"body", {"UNIQ_KEY": message_id}).fields["msgId"]
    async with announced(client, consumer("g2", "OneT"), me) as stream:

        def ask() -> Any:
            with RawClient(side) as raw:
                return raw.call(309, consumerGroup="g2", clientId=me, msgId=offset_id, brokerName="broker-a")

        asked = asyncio.get_running_loop().run_in_executor(None, ask)
        command = (await stream.next(20)).verify_message_command
        assert (command.message.topic.name, command.message.body) == ("OneT", b"body")
        assert command.message.system_properties.receipt_handle is None
        answer = VerifyMessageResult(nonce=command.nonce)
        stream.send(
            TelemetryCommand(status=Status(code=Code.FAILED_TO_CONSUME_MESSAGE), verify_message_result=answer)
        )
        reply = await asked
        assert reply.code == 0, reply
        assert b'"consumeResult":"CR_LATER"' in reply.body
        assert b'"remark":"from gRPC client"' in reply.body
