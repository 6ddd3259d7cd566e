"""Receives, transactions and questions of tools: the same at our endpoint and at the official proxy."""

import asyncio
import time
from typing import Any

import pytest
from pocketmq.grpc_endpoint.messages import (
    AckMessageEntry,
    AckMessageRequest,
    ClientType,
    Code,
    Duration,
    Encoding,
    EndTransactionRequest,
    FilterExpression,
    FilterType,
    MessageQueue,
    MessageType,
    ReceiveMessageRequest,
    Resource,
    SendMessageRequest,
    Status,
    TelemetryCommand,
    TransactionResolution,
    TransactionSource,
    VerifyMessageResult,
    timestamp_of,
)
from pocketmq.grpc_endpoint.producing.sent_message import own_properties

from conformance.grpc.announcing import announced, consumer, new_id
from conformance.grpc.rows import PX, message, send, topic
from conformance.servers.raw_client import RawClient
from conformance.servers.server import Server
from grpc_client import ClientCall, GrpcClient, changed


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
        assert last.HasField("delivery_timestamp")
        got = second.message
        system = got.system_properties
        handle = system.receipt_handle.split(" ")
        assert (len(handle), handle[2], handle[5]) == (9, "30000", "broker-a")
        assert (got.topic.name, got.body) == ("MoreReadT", b"hello")
        assert own_properties(got) == {"u": "1", "TRACE_CONTEXT": "tc"}
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
        wrong = changed(ack, entries=[entry, AckMessageEntry(receipt_handle="H")])
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
        assert last.HasField("delivery_timestamp")
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
        request = changed(receive("ReadT", "simple"), **more)
        first, last = await received(client, request, me)
        assert first.status.code == code
        assert first.status.message == (first.status.message if text is None else text)
        assert last.HasField("delivery_timestamp")


async def test_deadline_too_short_for_a_poll(client: GrpcClient) -> None:
    me = "d@1@0@a"
    async with announced(client, consumer("simple", "ReadT", kind=ClientType.SIMPLE_CONSUMER), me):
        call = client.open("ReceiveMessage", receive("ReadT", "simple"), client_id=me, timeout="3S")
        first = await call.next(20)
        assert first.status == Status(
            code=Code.ILLEGAL_POLLING_TIME,
            message="The deadline time remaining is not enough for polling, please check network condition",
        )


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
            born_timestamp=timestamp_of(int(time.time() * 1000)),
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
        assert not command.message.system_properties.HasField("receipt_handle")
        answer = VerifyMessageResult(nonce=command.nonce)
        stream.send(
            TelemetryCommand(status=Status(code=Code.FAILED_TO_CONSUME_MESSAGE), verify_message_result=answer)
        )
        reply = await asked
        assert reply.code == 0, reply
        assert b'"consumeResult":"CR_LATER"' in reply.body
        assert b'"remark":"from gRPC client"' in reply.body
