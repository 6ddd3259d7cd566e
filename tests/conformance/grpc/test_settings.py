"""Settings, heartbeats and terminations: the same answers of our endpoint and of the official proxy."""

import contextlib
from typing import Any

import h2.exceptions
import pytest
from pocketmq.grpc_endpoint.messages import (
    ClientType,
    Code,
    CustomizedBackoff,
    Duration,
    ExponentialBackoff,
    FilterExpression,
    FilterType,
    HeartbeatRequest,
    Metric,
    NotifyClientTerminationRequest,
    Resource,
    RetryPolicy,
    Settings,
    Status,
    TelemetryCommand,
    duration_of,
)

from conformance.grpc.announcing import consumer, producer
from conformance.servers.raw_client import RawClient
from conformance.servers.server import Server
from grpc_client import GrpcClient, RpcError, changed

STEPS = (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)


async def settled(client: GrpcClient, settings: Settings, client_id: str = "s@1@0@a") -> Any:
    """The reply to settings. Raises `RpcError` if they are refused."""
    stream = client.open("Telemetry", client_id=client_id)
    stream.send(TelemetryCommand(settings=settings))
    reply = await stream.next(20)
    with contextlib.suppress(h2.exceptions.StreamClosedError):
        stream.half_close()
    return reply


async def test_settings_of_a_producer(client: GrpcClient) -> None:
    sent = producer("NormalT", "NoSuchT")
    reply = await settled(client, sent)
    assert (reply.status.code, reply.status.message) == (Code.OK, "OK")
    assert reply.settings == changed(
        sent,
        backoff_policy=RetryPolicy(
            max_attempts=3,
            exponential_backoff=ExponentialBackoff(
                initial=duration_of(10), max=duration_of(1000), multiplier=2.0
            ),
        ),
        publishing=changed(sent.publishing, max_body_size=4_194_304, validate_message_type=True),
        metric=Metric(),
    )


@pytest.mark.parametrize("kind", [ClientType.PUSH_CONSUMER, ClientType.SIMPLE_CONSUMER])
async def test_settings_of_a_consumer(client: GrpcClient, kind: ClientType) -> None:
    sent = consumer("g2", "NormalT", kind=kind)
    reply = await settled(client, sent)
    assert reply.settings == changed(
        sent,
        backoff_policy=RetryPolicy(
            max_attempts=17,
            customized_backoff=CustomizedBackoff(next=[Duration(seconds=step) for step in STEPS]),
        ),
        subscription=changed(
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
