"""A gRPC client beside the test companion: the calls of tests/grpc_endpoint/test_watched*.py and test_journal.py.

The topic is `orders`, the group `billing`, the client `test@1@0@a`; it is a simple consumer, and sends too.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pocketmq.grpc_endpoint import messages as m
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.testing import EmbeddedServer, RocketMQ

import grpc_calls
from grpc_calls import ack, change, consumer, give_up, new_message, producer, send
from grpc_client import ClientCall, GrpcClient

T, G = m.Resource(name="orders"), m.Resource(name="billing")


@asynccontextmanager
async def companion(**settings: Any) -> AsyncIterator[RocketMQ]:
    """A server with the topic and the group; `settings` as for `EmbeddedServer`."""
    async with EmbeddedServer(**settings) as server:
        rocketmq = RocketMQ(server)
        rocketmq.topic("orders", queues=1)
        rocketmq.group("billing")
        yield rocketmq


def sent(body: bytes = b"hi", *, tag: str | None = None) -> m.SendMessageRequest:
    return send(new_message("orders", body, f"ID{body!r}", tag=tag))


def receive(batch: int = 32, *, tags: str = "*") -> m.ReceiveMessageRequest:
    return grpc_calls.receive(
        "billing",
        "orders",
        filter_expression=m.FilterExpression(type=m.FilterType.TAG, expression=tags),
        batch_size=batch,
        invisible_duration=m.duration_of(30_000),
        long_polling_timeout=m.duration_of(20_000),
    )


def settings(tags: str = "*") -> m.TelemetryCommand:
    wanted = m.FilterExpression(type=m.FilterType.TAG, expression=tags)
    return m.TelemetryCommand(settings=consumer("billing", ["orders"], m.ClientType.SIMPLE_CONSUMER, wanted))


async def announce(client: GrpcClient, tags: str = "*") -> ClientCall:
    """Become a member; the telemetry stream stays open."""
    stream = client.open("Telemetry")
    stream.send(settings(tags))
    assert (await stream.next()).status == m.OK
    return stream


async def received(client: GrpcClient, *, tags: str = "*") -> list[m.Message]:
    replies = await client.open("ReceiveMessage", receive(tags=tags)).all()
    return [reply.message for reply in replies if reply.HasField("message")]


def handle_of(message: m.Message) -> str:
    return message.system_properties.receipt_handle


def acked(handles: Iterable[str]) -> m.AckMessageRequest:
    return ack("billing", "orders", [("any", handle) for handle in handles])


def hidden(message: m.Message, ms: int) -> m.ChangeInvisibleDurationRequest:
    message_id = message.system_properties.message_id
    return change("billing", "orders", handle_of(message), ms, message_id=message_id)


def given_up(message: m.Message) -> m.ForwardMessageToDeadLetterQueueRequest:
    return give_up("billing", "orders", message.system_properties.message_id, handle_of(message))


async def half(rocketmq: RocketMQ, client: GrpcClient) -> ClientCall:
    """A producer of the topic `payments` with a half message; its telemetry stream."""
    broker = rocketmq.server.node.broker
    topic = TopicConfig(topic_name="payments", attributes={"+message.type": "TRANSACTION"})
    await asyncio.to_thread(rocketmq.server.call, broker.topics.update, topic)
    stream = client.open("Telemetry")
    stream.send(m.TelemetryCommand(settings=producer("payments")))
    assert (await stream.next()).status == m.OK
    born = m.timestamp_of(rocketmq.clock.now_ms())
    kind = m.MessageType.TRANSACTION
    message = new_message("payments", b"half", "half", message_type=kind, born_timestamp=born)
    assert (await client.ask(send(message))).status == m.OK
    return stream


async def record_grpc_calls(folder: Path) -> None:
    """A consumer that receives two messages, acknowledges one, and leaves; one call is cancelled."""
    async with (
        companion(journal=folder, grpc_port=0) as rocketmq,
        GrpcClient.connected(rocketmq.grpc_endpoint) as client,
    ):
        await announce(client)
        for body in (b"one", b"two"):
            await client.ask(sent(body))
        first, _ = await received(client)
        await client.ask(acked([handle_of(first)]))
        await client.ask(sent(b""))
        waiting = client.open("ReceiveMessage", receive())
        await client.ping()
        waiting.cancel()
        await client.ping()
        await client.ask(m.HeartbeatRequest(group=G, client_type=m.ClientType.SIMPLE_CONSUMER))
        await client.ask(m.NotifyClientTerminationRequest(group=G))
