"""Random requests to every rpc: each is answered, none is our mistake, and the server serves on."""

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pocketmq.grpc_endpoint import messages as m
from pocketmq.grpc_endpoint.messages.service import MESSAGING, Kind, Rpc
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.testing import EmbeddedServer

from grpc_client import GrpcClient, RpcError, encode, framed
from random_messages import any_message

QUICK = {
    "grpcClientConsumerMinLongPollingTimeoutMillis": 1,
    "grpcClientConsumerMaxLongPollingTimeoutMillis": 5,
    "minInvisibleTimeMillsForRecv": 0,
    "recallMessageEnable": True,
}
"""So that no receive waits long."""
TYPES = ("MIXED", "FIFO", "DELAY", "TRANSACTION", "PRIORITY")
"""Topics, named by their types."""
NAMES = st.sampled_from(
    (*TYPES, "orders", "billing", "%RETRY%billing", "%DLQ%billing", "", " ", "a!", "x" * 200, "rmq_sys_x")
)
HANDLES = st.sampled_from(
    (
        "",
        "1 2 3",
        "0 1795381676872 60000 0 0 broker-a 1 0 0",
        "0 99999999999999 60000 999 0 broker-a 0 0 99999999",
        "0 99999999999999 60000 0 9 broker-a -1 -1 -1",
        "0 99999999999999 9999999999999999999 0 1 other 2147483647 9223372036854775807 1",
        "x y z 0 0 broker-a a b c",
    )
)
RPCS = [rpc for rpc in MESSAGING if rpc.kind is not Kind.BIDI]


@st.composite
def likely(draw: st.DrawFn, kind: type[Any]) -> Any:
    """A random request whose names and handles are often those that a handler goes on with."""
    request: Any = draw(any_message(kind))
    resource = m.Resource(name=draw(NAMES))
    group = m.Resource(name=draw(NAMES))
    if hasattr(request, "topic"):
        request.topic.CopyFrom(resource)
    if hasattr(request, "group"):
        request.group.CopyFrom(group)
    if hasattr(request, "message_queue"):
        request.message_queue.topic.CopyFrom(resource)
    if hasattr(request, "receipt_handle"):
        request.receipt_handle = draw(HANDLES)
    if isinstance(request, m.AckMessageRequest):
        for entry in request.entries:
            entry.receipt_handle = draw(HANDLES)
    if isinstance(request, m.SendMessageRequest):
        for message in request.messages:
            message.topic.CopyFrom(resource)
    return request


CALLS = st.sampled_from(RPCS).flatmap(lambda rpc: st.tuples(st.just(rpc), likely(rpc.request)))


@pytest.mark.slow
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(CALLS, min_size=1, max_size=8), any_message(m.Settings), st.booleans())
def test_random_calls_are_answered_and_none_fails(
    caplog: pytest.LogCaptureFixture, calls: list[tuple[Rpc, Any]], announced: m.Settings, is_strict: bool
) -> None:
    caplog.clear()
    with EmbeddedServer(QUICK, grpc_port=0, grpcStrict=is_strict) as server:
        for name in ("orders", *TYPES):
            kind = {} if name == "orders" else {"attributes": {"+message.type": name}}
            server.call(server.broker.topics.update, TopicConfig(topic_name=name, **kind))
        asyncio.run(_talk(server.grpc_endpoint, calls, announced))
    mistakes = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.getMessage() + str(record.exc_info) for record in mistakes] == []


async def _talk(address: str, calls: list[tuple[Rpc, Any]], announced: m.Settings) -> None:
    async with GrpcClient.connected(address) as client:
        stream = client.open("Telemetry")
        stream.send(m.TelemetryCommand(settings=announced))
        for rpc, request in calls:
            call = client.open(rpc.name, framed(encode(request)), timeout="2S")
            try:
                replies = await call.all()
            except RpcError as error:
                assert error.status == 4  # noqa: PT017 - the deadline
                continue
            assert replies
        route = await client.ask(m.QueryRouteRequest(topic=m.Resource(name="orders")))
        assert route.status == m.OK
