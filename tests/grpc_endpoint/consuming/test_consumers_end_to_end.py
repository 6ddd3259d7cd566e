"""Consumers through the port of a server: cancelled receives, closed windows, many waits, virtual time."""

import contextlib
import os
import zlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pocketmq.client import Message, Producer
from pocketmq.grpc_endpoint.messages import (
    AckMessageEntry,
    AckMessageRequest,
    Code,
    NotifyClientTerminationRequest,
    Resource,
    TelemetryCommand,
)
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.testing import EmbeddedServer

from grpc_calls import consumer as settings_of
from grpc_client import ClientCall, GrpcClient
from grpc_consumers import a_receive
from waiting import until

TOPIC, GROUP = Resource(name="orders"), Resource(name="g")


@contextlib.asynccontextmanager
async def consumer(server: EmbeddedServer, client_id: str = "c1", **of: Any) -> AsyncIterator[GrpcClient]:
    """A push consumer with its telemetry stream."""
    async with GrpcClient.connected(server.grpc_endpoint, **of) as client:
        stream = client.open("Telemetry", client_id=client_id)
        stream.send(TelemetryCommand(settings=settings_of("g", ["orders"])))
        assert (await stream.next()).status.code == Code.OK
        yield client


async def send(server: EmbeddedServer, *bodies: bytes) -> None:
    async with Producer("p", namesrv_addr=server.namesrv_addr) as producer:
        for body in bodies:
            await producer.send(Message("orders", body))


def receive(client: GrpcClient, client_id: str = "c1") -> ClientCall:
    return client.open("ReceiveMessage", a_receive(), client_id=client_id)


def bodies_of(replies: list[Any]) -> list[bytes]:
    return sorted(reply.message.body for reply in replies if reply.HasField("message"))


def make_topic(server: EmbeddedServer) -> None:
    config = TopicConfig(topic_name="orders", read_queue_nums=1, write_queue_nums=1)
    server.call(lambda: server.broker.topics.update(config))


def waiting_receives(server: EmbeddedServer) -> int:
    count: int = server.call(lambda: server.broker.popping.waiters.total)
    return count


@pytest.fixture
async def server() -> AsyncIterator[EmbeddedServer]:
    async with EmbeddedServer(grpc_port=0) as server:
        make_topic(server)
        yield server


async def test_what_a_remoting_client_sends_a_grpc_client_consumes(server: EmbeddedServer) -> None:
    async with consumer(server) as client:
        waiting = receive(client)
        await send(server, b"m0")
        replies = await waiting.all()
        assert bodies_of(replies) == [b"m0"]
        system = replies[1].message.system_properties
        entry = AckMessageEntry(message_id=system.message_id, receipt_handle=system.receipt_handle)
        acked = await client.ask(AckMessageRequest(group=GROUP, topic=TOPIC, entries=[entry]), client_id="c1")
        assert acked.status.code == Code.OK


@pytest.mark.parametrize("end", ["cancel", "close"])
async def test_a_receive_that_is_cancelled_takes_nothing(server: EmbeddedServer, end: str) -> None:
    async with consumer(server) as client:
        async with GrpcClient.connected(server.grpc_endpoint) as other:
            cancelled = receive(other)
            await until(lambda: waiting_receives(server) == 1, what="the receive waits")
            if end == "cancel":
                cancelled.cancel()
                await other.ping()
        await until(lambda: waiting_receives(server) == 0, what="the receive is gone")
        await send(server, b"m0")
        assert bodies_of(await receive(client).all()) == [b"m0"]


async def test_messages_for_a_window_that_never_opens_go_to_another_client() -> None:
    large = os.urandom(200_000)
    async with EmbeddedServer(grpc_port=0, virtual_time=True) as server, consumer(server, "c2") as other:
        make_topic(server)
        async with consumer(server) as client:
            client.opens_windows = False
            unread = receive(client)
            await send(server, large)
            assert (await unread.next()).status.code == Code.OK
            unread.cancel()
            await client.ping()
            waiting = receive(other, "c2")
            await until(lambda: waiting_receives(server) == 1, what="the receive waits")
            server.clock.advance("6s")
        replies = await waiting.all()
        [message] = [reply.message for reply in replies if reply.HasField("message")]
        assert zlib.decompress(message.body) == large
        assert message.system_properties.delivery_attempt == 1


async def test_hundreds_of_receives_wait_and_each_message_wakes_one(server: EmbeddedServer) -> None:
    async with consumer(server) as client:
        calls = [receive(client) for _ in range(300)]
        await until(lambda: waiting_receives(server) == 300, what="all receives wait")
        await send(server, *(str(number).encode() for number in range(5)))
        await until(lambda: sum(call.is_ended for call in calls) == 5, what="five are answered")
        got = [bodies_of(await call.all()) for call in calls if call.is_ended]
        assert sorted(body for bodies in got for body in bodies) == [b"0", b"1", b"2", b"3", b"4"]
        for call in calls:
            if not call.is_ended:
                call.cancel()
        await until(lambda: waiting_receives(server) == 0, what="none waits")


async def test_virtual_time_ends_waits_and_renews() -> None:
    async with EmbeddedServer(grpc_port=0, virtual_time=True) as server:
        async with consumer(server) as client:
            make_topic(server)
            waiting = receive(client)
            await until(lambda: waiting_receives(server) == 1, what="the receive waits")
            server.clock.advance("20s")
            assert (await waiting.next()).status.code == Code.MESSAGE_NOT_FOUND
            await send(server, b"m0")
            first = await receive(client).all()
            assert bodies_of(first) == [b"m0"]
            server.clock.advance("10m")  # renewed: the client still has it
            again = receive(client)
            await until(lambda: waiting_receives(server) == 1, what="the receive waits")
            server.clock.advance("20s")
            assert (await again.next()).status.code == Code.MESSAGE_NOT_FOUND
            await client.ask(NotifyClientTerminationRequest(group=GROUP), client_id="c1")
            server.clock.advance("10s")
        async with consumer(server, "c2") as other:
            assert bodies_of(await receive(other, "c2").all()) == [b"m0"]
