"""QueryRoute: the queues of a topic as clients see them."""

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

from grpc_calls import GrpcBroker


def route(grpc: GrpcBroker, topic: str, namespace: str = "") -> Any:
    request = QueryRouteRequest(topic=Resource(name=topic, resource_namespace=namespace))
    return grpc.call(request)


def permissions(reply: Any) -> list[tuple[int, str]]:
    return [(queue.id, Permission(queue.permission).name) for queue in reply.message_queues]


async def test_route_of_a_plain_topic(grpc: GrpcBroker) -> None:
    grpc.topic("t", queues=2)
    grpc.routes.port = 8081
    reply = route(grpc, "t", namespace="ns")
    assert (reply.status.code, reply.status.message) == (Code.OK, "OK")
    assert permissions(reply) == [(0, "READ_WRITE"), (1, "READ_WRITE")]
    queue = reply.message_queues[0]
    assert (queue.topic.name, queue.topic.resource_namespace) == ("t", "ns")
    assert (queue.broker.name, queue.broker.id) == ("broker-a", 0)
    assert queue.broker.endpoints.scheme == AddressScheme.IPv4
    (address,) = queue.broker.endpoints.addresses
    assert (address.host, address.port) == ("127.0.0.1", 8081)
    assert list(queue.accept_message_types) == [MessageType.NORMAL]


@pytest.mark.parametrize(
    ("read", "write", "perm", "expected"),
    [
        (1, 3, 6, [(0, "WRITE"), (1, "WRITE"), (2, "READ_WRITE")]),
        (3, 1, 6, [(0, "READ"), (1, "READ"), (2, "READ_WRITE")]),
        (2, 3, 4, [(0, "READ"), (1, "READ")]),
        (2, 3, 2, [(0, "WRITE"), (1, "WRITE"), (2, "WRITE")]),
        (2, 0, 0, [(0, "NONE"), (1, "NONE")]),
    ],
)
async def test_queues_by_permission(
    grpc: GrpcBroker, read: int, write: int, perm: int, expected: list[tuple[int, str]]
) -> None:
    grpc.topic("t", read_queue_nums=read, write_queue_nums=write, perm=perm)
    assert permissions(route(grpc, "t")) == expected


@pytest.mark.parametrize("kind", ["FIFO", "DELAY", "TRANSACTION", "PRIORITY"])
async def test_types_of_a_topic(grpc: GrpcBroker, kind: str) -> None:
    grpc.topic("t", kind, queues=1)
    (queue,) = route(grpc, "t").message_queues
    assert list(queue.accept_message_types) == [MessageType[kind]]


async def test_mixed_topic_takes_four_types(grpc: GrpcBroker) -> None:
    grpc.topic("t", "MIXED", queues=1)
    (queue,) = route(grpc, "t").message_queues
    names = [MessageType(kind).name for kind in queue.accept_message_types]
    assert names == ["NORMAL", "FIFO", "DELAY", "TRANSACTION"]


async def test_unknown_topic_is_made_unless_strict(grpc: GrpcBroker, strict: GrpcBroker) -> None:
    assert len(route(grpc, "new").message_queues) == 4
    assert grpc.broker.topics.find("new") is not None
    reply = route(strict, "new")
    assert reply.status.code == Code.TOPIC_NOT_FOUND
    assert reply.status.message == (
        "CODE: 17  DESC: No topic route info in name server for the topic: new\n"
        "For more information, please visit the url, https://rocketmq.apache.org/docs/bestPractice/06FAQ"
    )
    assert strict.broker.topics.find("new") is None


async def test_unknown_topic_is_not_found_where_topics_are_not_made(grpc_maker: Any) -> None:
    grpc = grpc_maker(auto_create_topic_enable=False)
    assert route(grpc, "new").status.code == Code.TOPIC_NOT_FOUND


async def test_retry_topics_are_not_made(grpc: GrpcBroker) -> None:
    assert route(grpc, "%RETRY%g").status.code == Code.TOPIC_NOT_FOUND


@pytest.mark.parametrize(
    ("topic", "text"),
    [
        ("", "The specified topic is blank"),
        ("x" * 128, "The specified topic is longer than topic max length 127."),
        ("a.b", "The specified topic[a.b] contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
        ("TBW102", "cannot access system topic"),
        ("rmq_sys_x", "cannot access system topic"),
    ],
)
async def test_refused_names(grpc: GrpcBroker, topic: str, text: str) -> None:
    assert grpc.refused(QueryRouteRequest(topic=Resource(name=topic))) == (Code.ILLEGAL_TOPIC, text)
