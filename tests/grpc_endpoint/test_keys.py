"""Every key of the gRPC port, one by one: the same call at a server without the key, and at one with it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import h2.settings
import pytest
from pocketmq.broker.config import keys as config_keys
from pocketmq.grpc_endpoint import messages as m
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.testing import EmbeddedServer

import grpc_calls
from grpc_calls import consumer, new_message, producer
from grpc_client import GrpcClient, RpcError
from grpc_companion import G, T, announce, sent

Ask = Callable[[GrpcClient], Awaitable[object]]
HALF = {"message_type": m.MessageType.TRANSACTION, "message_id": "half"}


def send(body: bytes = b"a longer body", user: dict[str, str] | None = None, **system: Any) -> Ask:
    """The code of its reply."""

    async def ask(client: GrpcClient) -> object:
        request = grpc_calls.send(new_message("orders", body, user=user, **system))
        return (await client.ask(request)).status.code

    return ask


def settings(read: Callable[[m.Settings], object], *, is_producer: bool = True) -> Ask:
    """Something of the settings that a client gets."""

    async def ask(client: GrpcClient) -> object:
        stream = client.open("Telemetry")
        sent = producer("orders") if is_producer else consumer("billing")
        stream.send(m.TelemetryCommand(settings=sent))
        return read((await stream.next()).settings)

    return ask


def backoff(read: Callable[[m.ExponentialBackoff], object]) -> Ask:
    return settings(lambda one: read(one.backoff_policy.exponential_backoff))


def receive(read: Callable[[list[Any]], object], **fields: Any) -> Ask:
    """Something of the replies to a receive of one message."""

    async def ask(client: GrpcClient) -> object:
        await announce(client)
        await client.ask(sent())
        queue = m.MessageQueue(topic=T, id=-1)
        request = m.ReceiveMessageRequest(group=G, message_queue=queue, batch_size=1, **fields)
        return read(await client.open("ReceiveMessage", request).all())

    return ask


def code_of(replies: list[Any]) -> object:
    return replies[0].status.code


def hidden_for(replies: list[Any]) -> object:
    return int((replies[1].message.system_properties.receipt_handle or "").split(" ")[2])


def ends(count: int) -> Ask:
    """The codes of this many ends of two half messages with one id."""

    async def ask(client: GrpcClient) -> object:
        for _ in range(count):
            assert await send(**HALF)(client) == m.Code.OK
        end = m.EndTransactionRequest(
            topic=T, message_id="half", transaction_id="half", resolution=m.TransactionResolution.ROLLBACK
        )
        await asyncio.sleep(0.005)  # a time of 0 ms is over in the next one
        return [(await client.ask(end)).status.code for _ in range(count)]

    return ask


async def status(client: GrpcClient) -> object:
    """The gRPC status of a send of 2,000 bytes."""
    try:
        return (await client.ask(sent(bytes(2000)))).status.code
    except RpcError as error:
        return error.status


async def calls_at_once(client: GrpcClient) -> object:
    await client.ping()
    return client.h2.remote_settings[h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS]


async def is_friendly(client: GrpcClient) -> object:
    return (await client.ask(m.QueryRouteRequest(topic=m.Resource(name="not-there")))).status.code


C = m.Code
CONFLICT, BAD_TIME = C.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, C.ILLEGAL_INVISIBLE_TIME
SOON = m.timestamp_of(int(time.time() * 1000) + 3_600_000)
MS_100 = m.duration_of(100)
S_30 = m.Duration(seconds=30)
ROWS: list[tuple[str, object, Ask, object, object]] = [
    ("grpcStrict", True, is_friendly, C.OK, C.TOPIC_NOT_FOUND),
    ("grpcMaxInboundMessageSize", 1000, status, C.OK, 8),
    ("grpcMaxConcurrentCallsPerConnection", 7, calls_at_once, 10_000, 7),
    ("enableMessageBodyEmptyCheck", False, send(b""), C.MESSAGE_BODY_EMPTY, C.OK),
    ("maxMessageSize", 10, send(), C.OK, C.MESSAGE_BODY_TOO_LARGE),
    ("maxUserPropertySize", 5, send(user={"key": "value"}), C.OK, C.MESSAGE_PROPERTIES_TOO_LARGE),
    ("userPropertyMaxNum", 1, send(user={"a": "1", "b": "2"}), C.OK, C.MESSAGE_PROPERTIES_TOO_LARGE),
    ("maxMessageGroupSize", 3, send(message_group="customer"), CONFLICT, C.ILLEGAL_MESSAGE_GROUP),
    ("maxLiteTopicSize", 3, send(lite_topic="customer"), CONFLICT, C.ILLEGAL_LITE_TOPIC),
    ("maxDelayTimeMills", 1000, send(delivery_timestamp=SOON), CONFLICT, C.ILLEGAL_DELIVERY_TIME),
    (
        "maxTransactionRecoverySecond",
        10,
        send(orphaned_transaction_recovery_duration=S_30, **HALF),
        C.OK,
        C.BAD_REQUEST,
    ),
    ("enableTopicMessageTypeCheck", False, send(message_group="customer"), CONFLICT, C.OK),
    ("transactionDataExpireMillis", 0, ends(1), [C.OK], [C.INTERNAL_SERVER_ERROR]),
    ("transactionDataMaxNum", 1, ends(2), [C.OK, C.OK], [C.OK, C.INTERNAL_SERVER_ERROR]),
    ("grpcClientProducerMaxAttempts", 7, settings(lambda one: one.backoff_policy.max_attempts), 3, 7),
    ("grpcClientProducerBackoffInitialMillis", 77, backoff(lambda one: m.ms_of(one.initial)), 10, 77),
    ("grpcClientProducerBackoffMaxMillis", 77, backoff(lambda one: m.ms_of(one.max)), 1000, 77),
    ("grpcClientProducerBackoffMultiplier", 7, backoff(lambda one: one.multiplier), 2.0, 7.0),
    (
        "grpcClientConsumerLongPollingBatchSize",
        7,
        settings(lambda one: one.subscription.receive_batch_size, is_producer=False),
        32,
        7,
    ),
    (
        "grpcClientConsumerMaxLongPollingTimeoutMillis",
        7000,
        settings(lambda one: m.ms_of(one.subscription.long_polling_timeout), is_producer=False),
        20_000,
        7000,
    ),
    ("metricCollectorMode", "proxy", settings(lambda one: one.metric.on), False, True),
    ("defaultInvisibleTimeMills", 7000, receive(hidden_for, auto_renew=True), 60_000, 7000),
    ("minInvisibleTimeMillsForRecv", 1, receive(code_of, invisible_duration=MS_100), BAD_TIME, C.OK),
    ("maxInvisibleTimeMills", 20_000, receive(code_of, invisible_duration=S_30), C.OK, BAD_TIME),
    ("enableProxyAutoRenew", False, receive(code_of, auto_renew=True), C.OK, BAD_TIME),
]
ELSEWHERE = {
    "grpcClientIdleTimeMills": "below",
    "grpcClientConsumerMinLongPollingTimeoutMillis": "below",
    "grpcServerPort": "test_endpoint.py",
    "grpcShutdownTimeSeconds": "below",
    "grpcProxyRelayRequestTimeoutInSeconds": "clients/test_client_commands.py",
    "metricCollectorAddress": "clients/test_telemetry.py",
    "useDelayLevel": "producing/test_sends.py",
    "maxRenewRetryTimes": "consuming/test_renewal.py",
    "renewAheadTimeMillis": "consuming/test_renewal.py",
    "renewMaxTimeMillis": "consuming/test_renewal.py",
    "renewSchedulePeriodMillis": "consuming/test_renewal.py",
    "invisibleTimeMillisWhenClear": "consuming/test_renewal.py",
    "tlsCertPath": "test_endpoint.py",
    "tlsKeyPath": "http2/test_certificates.py",
    "tlsKeyPassword": "http2/test_certificates.py",
    "tlsTestModeEnable": "http2/test_flow_control.py",
}


@pytest.mark.parametrize(("key", "value", "ask", "before", "after"), ROWS, ids=[row[0] for row in ROWS])
async def test_a_key_changes_what_it_names(
    key: str, value: object, ask: Ask, before: object, after: object
) -> None:
    kind = "TRANSACTION" if "ransaction" in key else "NORMAL"
    for words, expected in (({}, before), ({key: value}, after)):
        async with EmbeddedServer(words, grpc_port=0) as server:
            topic = TopicConfig(topic_name="orders", attributes={"+message.type": kind})
            await asyncio.to_thread(server.call, server.node.broker.topics.update, topic)
            async with GrpcClient.connected(server.grpc_endpoint) as client:
                assert await ask(client) == expected


def test_every_key_of_the_port_has_a_test() -> None:
    fields = config_keys.fields("broker")
    keys = {name for name, field in fields.items() if field.place == "endpoint"} | {"maxMessageSize"}
    assert keys == {row[0] for row in ROWS} | ELSEWHERE.keys()


async def test_a_connection_without_a_call_is_closed_after_the_time_of_the_key() -> None:
    """Without the key, after two minutes: a test that waits for the end would take as long."""
    async with (
        EmbeddedServer(grpcClientIdleTimeMills=100, grpc_port=0) as server,
        GrpcClient.connected(server.grpc_endpoint) as client,
    ):
        await client.is_closed.wait()


@pytest.mark.parametrize("ms", [5000, 1])
async def test_a_receive_is_held_as_long_as_the_key_says_if_it_asks_for_less(ms: int) -> None:
    words = {} if ms == 5000 else {"grpcClientConsumerMinLongPollingTimeoutMillis": ms}
    async with EmbeddedServer(words, grpc_port=0, virtual_time=True) as server:
        topic = TopicConfig(topic_name="orders")
        await asyncio.to_thread(server.call, server.node.broker.topics.update, topic)
        async with GrpcClient.connected(server.grpc_endpoint) as client:
            await announce(client)
            queue = m.MessageQueue(topic=T, id=-1)
            request = m.ReceiveMessageRequest(
                group=G, message_queue=queue, batch_size=1, auto_renew=True, long_polling_timeout=m.Duration()
            )
            call = client.open("ReceiveMessage", request)
            await client.ping()
            await asyncio.to_thread(server.clock.advance, 4)
            await client.ping()
            assert call.is_ended is (ms < 4000)
            await asyncio.to_thread(server.clock.advance, 1)
            assert code_of(await call.all()) == C.MESSAGE_NOT_FOUND


async def test_the_time_of_a_stop_is_the_keys() -> None:
    took = []
    for seconds in (0, 1):
        async with EmbeddedServer(grpc_port=0, grpcShutdownTimeSeconds=seconds) as server:
            server.faults.silence(code="SendMessage", may_stay_unused=True)
            async with GrpcClient.connected(server.grpc_endpoint) as client:
                client.open("SendMessage", sent())
                await client.ping()
                began = time.monotonic()
                await asyncio.to_thread(server.stop)
                took.append(time.monotonic() - began)
    assert took[0] < 0.9 < took[1]
