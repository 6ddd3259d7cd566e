"""The ten scenarios of the official LocalGrpcIT, over the socket, in virtual time. `conformance/grpc` runs the same
kinds of requests at the official proxy too."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from pocketmq.grpc_endpoint import messages as m
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.testing import EmbeddedServer

from grpc_client import ClientCall, GrpcClient
from grpc_companion import G, T, acked, given_up, handle_of, hidden

LARGEST = 4 * 1024 * 1024


@pytest.fixture
async def server() -> AsyncIterator[EmbeddedServer]:
    async with EmbeddedServer(grpc_port=0, virtual_time=True, recallMessageEnable=True) as server:
        yield server


@pytest.fixture
async def client(server: EmbeddedServer) -> AsyncIterator[GrpcClient]:
    async with GrpcClient.connected(server.grpc_endpoint, window=1 << 20) as client:
        yield client


async def on_loop(server: EmbeddedServer, function: Callable[[Any], object], config: Any) -> None:
    await asyncio.to_thread(server.call, function, config)


async def make(server: EmbeddedServer, kind: str = "NORMAL", *, queues: int = 1, **group: Any) -> None:
    """The topic `orders` of this type, and the group `billing`."""
    broker = server.node.broker
    topic = TopicConfig(
        topic_name="orders",
        read_queue_nums=queues,
        write_queue_nums=queues,
        attributes={"+message.type": kind},
    )
    await on_loop(server, broker.topics.update, topic)
    await on_loop(server, broker.groups.update, SubscriptionGroupConfig(group_name="billing", **group))


async def announce(client: GrpcClient, kind: m.ClientType = m.ClientType.SIMPLE_CONSUMER) -> ClientCall:
    subscription = m.Subscription(group=G, subscriptions=[m.SubscriptionEntry(topic=T)])
    settings = m.Settings(client_type=kind, subscription=subscription)
    if kind is m.ClientType.PRODUCER:
        settings = m.Settings(client_type=kind, publishing=m.Publishing(topics=[T]))
    stream = client.open("Telemetry")
    stream.send(m.TelemetryCommand(settings=settings))
    assert (await stream.next()).status == m.OK
    return stream


async def send(client: GrpcClient, body: bytes, **system: Any) -> m.SendResultEntry:
    properties = m.SystemProperties(message_id=f"id-{body[:9].decode()}", **system)
    message = m.Message(topic=T, body=body, system_properties=properties)
    reply = await client.ask(m.SendMessageRequest(messages=[message]))
    assert reply.status == m.OK
    return reply.entries[0]


def receive(client: GrpcClient, batch: int = 32, **fields: Any) -> ClientCall:
    request = m.ReceiveMessageRequest(
        group=G,
        message_queue=m.MessageQueue(topic=T, id=-1),
        batch_size=batch,
        invisible_duration=m.Duration(seconds=30),
        long_polling_timeout=m.Duration(seconds=20),
        **fields,
    )
    return client.open("ReceiveMessage", request)


async def messages_of(call: ClientCall) -> list[m.Message]:
    return [reply.message for reply in await call.all() if reply.HasField("message")]


async def nothing_arrives(server: EmbeddedServer, client: GrpcClient) -> None:
    waiting = receive(client)
    await client.ping()
    await asyncio.to_thread(server.clock.advance, 21)
    assert [reply.status.code for reply in await waiting.all()] == [m.Code.MESSAGE_NOT_FOUND, 0]


async def advance(server: EmbeddedServer, text: str) -> None:
    await asyncio.to_thread(server.clock.advance, text)


async def test_1_a_route_has_the_queues_with_permission_type_and_address(
    server: EmbeddedServer, client: GrpcClient
) -> None:
    await make(server, queues=3)
    reply = await client.ask(m.QueryRouteRequest(topic=T))
    assert reply.status == m.OK
    host, _, port = server.grpc_endpoint.rpartition(":")
    assert [queue.id for queue in reply.message_queues] == [0, 1, 2]
    for queue in reply.message_queues:
        assert (queue.permission, queue.accept_message_types) == (
            m.Permission.READ_WRITE,
            [m.MessageType.NORMAL],
        )
        assert queue.broker.endpoints.addresses == [m.Address(host=host, port=int(port))]


async def test_2_an_assignment_is_any_queue_of_the_broker(server: EmbeddedServer, client: GrpcClient) -> None:
    await make(server, queues=3)
    reply = await client.ask(m.QueryAssignmentRequest(topic=T, group=G))
    assert reply.status == m.OK
    assert [one.message_queue.id for one in reply.assignments] == [-1]


async def test_3_an_assignment_in_order_is_every_queue(server: EmbeddedServer, client: GrpcClient) -> None:
    await make(server, queues=3, consume_message_orderly=True)
    reply = await client.ask(m.QueryAssignmentRequest(topic=T, group=G))
    assert [one.message_queue.id for one in reply.assignments] == [0, 1, 2]


async def test_4_a_transaction_without_end_is_checked_and_committed(
    server: EmbeddedServer, client: GrpcClient
) -> None:
    await make(server, "TRANSACTION")
    stream = await announce(client, m.ClientType.PRODUCER)
    sent = await send(
        client,
        b"half",
        message_type=m.MessageType.TRANSACTION,
        born_timestamp=m.timestamp_of(server.clock.now_ms()),
    )
    await advance(server, "90s")
    orphan = (await stream.next()).recover_orphaned_transaction_command
    assert (orphan.transaction_id, orphan.message.body) == (sent.transaction_id, b"half")
    end = m.EndTransactionRequest(
        topic=T,
        message_id=orphan.message.system_properties.message_id,
        transaction_id=orphan.transaction_id,
        resolution=m.TransactionResolution.COMMIT,
        source=m.TransactionSource.SOURCE_SERVER_CHECK,
    )
    assert (await client.ask(end)).status == m.OK
    await announce(client)
    assert [one.body for one in await messages_of(receive(client))] == [b"half"]


async def test_5_a_delayed_message_is_delivered_at_its_time(
    server: EmbeddedServer, client: GrpcClient
) -> None:
    await make(server, "DELAY")
    await announce(client)
    due_ms = server.clock.now_ms() + 60_000
    await send(client, b"later", delivery_timestamp=m.timestamp_of(due_ms))
    await nothing_arrives(server, client)
    await advance(server, "40s")
    (message,) = await messages_of(receive(client))
    assert (message.body, message.system_properties.message_type) == (b"later", m.MessageType.DELAY)
    delivered = message.system_properties.delivery_timestamp
    assert delivered is not None
    assert m.ms_of(delivered) == due_ms


async def test_6_a_recalled_message_is_never_delivered(server: EmbeddedServer, client: GrpcClient) -> None:
    await make(server, "DELAY")
    await announce(client)
    due = m.timestamp_of(server.clock.now_ms() + 60_000)
    sent = await send(client, b"recalled", delivery_timestamp=due)
    reply = await client.ask(m.RecallMessageRequest(topic=T, recall_handle=sent.recall_handle))
    assert (reply.status, reply.message_id) == (m.OK, sent.message_id)
    await advance(server, "70s")
    await nothing_arrives(server, client)


async def test_7_a_message_of_the_largest_size_arrives_whole(
    server: EmbeddedServer, client: GrpcClient
) -> None:
    await make(server)
    await announce(client)
    body = os.urandom(LARGEST // 2).hex().encode()
    await send(client, body)
    (message,) = await messages_of(receive(client))
    assert message.body == body


async def test_8_a_message_is_sent_received_refused_by_its_consumer_and_received_again(
    server: EmbeddedServer, client: GrpcClient
) -> None:
    await make(server)
    await announce(client)
    await send(client, b"again")
    (first,) = await messages_of(receive(client))
    assert (await client.ask(hidden(first, 5000))).status == m.OK
    await advance(server, "10s")
    (second,) = await messages_of(receive(client))
    assert (second.body, second.system_properties.delivery_attempt) == (b"again", 2)
    assert (await client.ask(acked([handle_of(second)]))).status == m.OK
    await nothing_arrives(server, client)


@pytest.mark.parametrize("how", ["by its attempts", "by its client"])
async def test_9_a_message_becomes_a_dead_letter(
    server: EmbeddedServer, client: GrpcClient, how: str
) -> None:
    await make(server, retry_max_times=0)
    await announce(client)
    await send(client, b"bad")
    (message,) = await messages_of(receive(client))
    if how == "by its client":
        assert (await client.ask(given_up(message))).status.code == m.Code.OK
    else:
        await advance(server, "40s")
        assert await messages_of(receive(client)) == []
    store = server.node.broker.store
    assert await asyncio.to_thread(server.call, store.max_offset, "%DLQ%billing", 0) == 1
    await nothing_arrives(server, client)


async def test_10_messages_of_a_group_are_consumed_in_their_order(
    server: EmbeddedServer, client: GrpcClient
) -> None:
    await make(server, "FIFO", consume_message_orderly=True)
    await announce(client)
    for body in (b"one", b"two", b"three"):
        await send(client, body, message_group="customer-7")
    first = await messages_of(receive(client, 2, attempt_id="a"))
    assert [one.body for one in first] == [b"one", b"two"]
    assert [one.body for one in await messages_of(receive(client, 2, attempt_id="a"))] == [b"one", b"two"]
    await nothing_arrives(server, client)
    assert (await client.ask(acked(map(handle_of, first)))).status == m.OK
    assert [one.body for one in await messages_of(receive(client, 2, attempt_id="b"))] == [b"three"]
