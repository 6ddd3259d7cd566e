"""RecallMessage: a timed message is taken back before it is due."""

from typing import Any

import pytest
from pocketmq.grpc_endpoint.messages import Code, RecallMessageRequest, Resource, timestamp_of

from broker_fakes import FakeLoop
from grpc_calls import GrpcBroker, new_message, send

PX = "org.apache.rocketmq.proxy.common.ProxyException: "
ID = "01AABBCCDDEEFF00112233445566000001"


@pytest.fixture
async def timed(grpc_maker: Any) -> GrpcBroker:
    grpc: GrpcBroker = grpc_maker(recall_message_enable=True)
    grpc.topic("d", "DELAY", queues=1)
    return grpc


def handle_of(grpc: GrpcBroker, clock: Any) -> str:
    due = timestamp_of(clock.wall_ms() + 60_000)
    reply = grpc.call(send(new_message("d", message_id=ID, delivery_timestamp=due)))
    handle: str = reply.entries[0].recall_handle
    return handle


def recall(handle: str, topic: str = "d") -> RecallMessageRequest:
    return RecallMessageRequest(topic=Resource(name=topic), recall_handle=handle)


async def test_recalled_message_is_never_delivered(timed: GrpcBroker, clock: Any, loop: FakeLoop) -> None:
    reply = timed.call(recall(handle_of(timed, clock)))
    assert (reply.status.code, reply.message_id) == (Code.OK, ID)


async def test_recall_is_forbidden_unless_the_broker_allows_it(grpc: GrpcBroker, clock: Any) -> None:
    grpc.topic("d", "DELAY", queues=1)
    text = PX + "recall failed, operation is forbidden"
    assert grpc.refused(recall(handle_of(grpc, clock))) == (Code.INTERNAL_SERVER_ERROR, text)


async def test_handle_that_cannot_be_read(timed: GrpcBroker) -> None:
    text = PX + "recall handle is invalid"
    assert timed.refused(recall("nonsense")) == (Code.INTERNAL_SERVER_ERROR, text)


async def test_topic_must_take_timed_messages(timed: GrpcBroker) -> None:
    timed.topic("t")
    code, text = timed.refused(recall("x", "t"))
    assert code == Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE
    assert text.endswith("the expected type is NORMAL, but actual type is DELAY")
    timed.topic("m", "MIXED")
    assert timed.refused(recall("x", "m")) == (
        Code.INTERNAL_SERVER_ERROR,
        PX + "recall handle is invalid",
    )
