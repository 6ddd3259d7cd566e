"""Each row is refused alike by our endpoint and by the official proxy."""

import asyncio
import time
from typing import Any

import pytest
from pocketmq.grpc_endpoint.messages import (
    AddressScheme,
    Code,
    MessageType,
    Permission,
    QueryRouteRequest,
    Resource,
)

from conformance.grpc.announcing import announced, consumer
from conformance.grpc.rows import RECEIPTS, ROWS
from conformance.grpc.side import TOPICS
from grpc_client import GrpcClient


async def check(client: GrpcClient, request: Any, code: Code, text: str | None) -> None:
    status = (await client.ask(request, client_id="rows@1@0@a", seconds=20)).status
    got = status.code, status.message
    assert got == (code, status.message if text is None else text)


@pytest.mark.parametrize(
    ("request_", "code", "text"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
async def test_row(client: GrpcClient, request_: Any, code: Code, text: str | None) -> None:
    await check(client, request_, code, text)


@pytest.mark.parametrize(
    ("request_", "code", "text"), [row[1:] for row in RECEIPTS], ids=[row[0] for row in RECEIPTS]
)
async def test_row_of_a_consumer(client: GrpcClient, request_: Any, code: Code, text: str | None) -> None:
    async with announced(client, consumer("g", "NormalT"), "rows@1@0@a"):
        await check(client, request_, code, text)


QUEUES = {
    "NormalT": [(number, "READ_WRITE") for number in range(4)],
    "FifoT": [(number, "READ_WRITE") for number in range(8)],
    "DelayT": [(0, "READ_WRITE")],
    "TransT": [(0, "READ_WRITE")],
    "PriorityT": [(number, "READ_WRITE") for number in range(4)],
    "ReadT": [(0, "READ"), (1, "READ")],
    "WriteT": [(0, "WRITE"), (1, "WRITE")],
    "NoneT": [(0, "NONE"), (1, "NONE")],
    "MoreWriteT": [(0, "WRITE"), (1, "WRITE"), (2, "READ_WRITE")],
    "MoreReadT": [(0, "READ"), (1, "READ"), (2, "READ_WRITE")],
}


@pytest.mark.parametrize("topic", QUEUES)
async def test_route(client: GrpcClient, topic: str) -> None:
    """The official proxy finds a new topic late: it remembers for 20 s that a topic is missing."""
    deadline = time.monotonic() + 30
    while True:
        named = Resource(name=topic, resource_namespace="ns")
        reply = await client.ask(QueryRouteRequest(topic=named))
        if reply.status.code == Code.OK or time.monotonic() > deadline:
            break
        await asyncio.sleep(1)
    assert [(queue.id, Permission(queue.permission).name) for queue in reply.message_queues] == QUEUES[topic]
    queue = reply.message_queues[0]
    assert queue.topic == Resource(name=topic, resource_namespace="ns")
    assert (queue.broker.name, queue.broker.id) == ("broker-a", 0)
    (address,) = queue.broker.endpoints.addresses
    assert (AddressScheme(queue.broker.endpoints.scheme).name, address.host, address.port) == (
        "IPv4",
        "127.0.0.1",
        8081,
    )
    assert [MessageType(kind).name for kind in queue.accept_message_types] == [TOPICS[topic][0]]
