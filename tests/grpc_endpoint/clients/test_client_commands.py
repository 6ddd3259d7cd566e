"""307, 309 and 39 reach gRPC clients as commands of their telemetry streams."""

import asyncio
from typing import Any

import pytest
from pocketmq.grpc_endpoint.messages import (
    Code,
    Status,
    TelemetryCommand,
    ThreadStackTrace,
    VerifyMessageResult,
)
from pocketmq.protocol.requests.to_client import ConsumeMessageDirectly, GetConsumerRunningInfo

from broker_fakes import ask, store_message, turns
from grpc_calls import FakeStream, GrpcBroker, consumer


def answer(stream: FakeStream, code: Code, **content: Any) -> None:
    """The client answers the last command."""
    stream.send(TelemetryCommand(status=Status(code=code), **content))


async def until_asked(stream: FakeStream) -> TelemetryCommand:
    await turns(10)
    command: TelemetryCommand = stream.replies[-1]
    return command


@pytest.mark.parametrize(
    ("code", "result"),
    [
        (Code.OK, "CR_SUCCESS"),
        (Code.FAILED_TO_CONSUME_MESSAGE, "CR_LATER"),
        (Code.MESSAGE_CORRUPTED, "CR_RETURN_NULL"),
        (Code.NOT_IMPLEMENTED, None),
    ],
)
async def test_message_is_consumed_directly(grpc: GrpcBroker, code: Code, result: str | None) -> None:
    grpc.topic("t")
    message_id = store_message(grpc.broker, "t", body=b"body")
    stream = grpc.telemetry(consumer("g"))
    request = ConsumeMessageDirectly(consumer_group="g", client_id="c1", msg_id=message_id, topic="t")
    asked = asyncio.create_task(ask(grpc.broker, request))
    command = (await until_asked(stream)).verify_message_command
    assert (command.nonce, command.message.body, command.message.topic.name) == ("0", b"body", "t")
    assert not command.message.system_properties.HasField("receipt_handle")
    answer(stream, code, verify_message_result=VerifyMessageResult(nonce=command.nonce))
    got = await asked
    assert got.code == 0
    assert got.json.get("consumeResult") == result
    assert got.json["remark"] == "from gRPC client"


async def test_client_that_does_not_answer(grpc_maker: Any) -> None:
    grpc = grpc_maker(endpoint={"grpc_proxy_relay_request_timeout_in_seconds": 0.01})
    grpc.topic("t")
    message_id = store_message(grpc.broker, "t", body=b"body")
    grpc.telemetry(consumer("g"))
    request = ConsumeMessageDirectly(consumer_group="g", client_id="c1", msg_id=message_id, topic="t")
    got = await ask(grpc.broker, request)
    assert (got.code, got.remark) == (2, "call remote timeout")


async def test_threads_of_a_client(grpc: GrpcBroker) -> None:
    stream = grpc.telemetry(consumer("g"))
    request = GetConsumerRunningInfo(consumer_group="g", client_id="c1", jstack_enable=True)
    asked = asyncio.create_task(ask(grpc.broker, request))
    command = (await until_asked(stream)).print_thread_stack_trace_command
    answer(
        stream, Code.OK, thread_stack_trace=ThreadStackTrace(nonce=command.nonce, thread_stack_trace="main()")
    )
    got = await asked
    assert (got.code, got.json["jstack"]) == (0, "main()")


async def test_state_of_a_client_is_what_it_announced(grpc: GrpcBroker, strict: GrpcBroker) -> None:
    request = GetConsumerRunningInfo(consumer_group="g", client_id="c1")
    grpc.telemetry(consumer("g", ["t", "u"]))
    got = await ask(grpc.broker, request)
    assert got.code == 0
    assert got.json["properties"]["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
    assert sorted(one["topic"] for one in got.json["subscriptionSet"]) == ["t", "u"]
    strict.group("g")
    strict.telemetry(consumer("g"))
    assert (await ask(strict.broker, request)).code == 207
