"""Settings of a client, the telemetry stream that announces them, and ids of messages."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pocketmq.grpc_endpoint.messages import (
    ClientType,
    Code,
    Duration,
    FilterExpression,
    FilterType,
    NotifyClientTerminationRequest,
    Publishing,
    Resource,
    Settings,
    Subscription,
    SubscriptionEntry,
    TelemetryCommand,
)

from grpc_client import ClientCall, GrpcClient

ALL = FilterExpression(type=FilterType.TAG, expression="*")


_numbers = itertools.count(1)


def new_id() -> str:
    """The id of one more message."""
    return f"01AABBCCDDEEFF{next(_numbers):020d}"


def producer(*topics: str) -> Settings:
    return Settings(
        client_type=ClientType.PRODUCER,
        request_timeout=Duration(seconds=3),
        publishing=Publishing(topics=[Resource(name=topic) for topic in topics]),
    )


def consumer(
    group: str,
    *topics: str,
    kind: ClientType = ClientType.PUSH_CONSUMER,
    expression: FilterExpression = ALL,
) -> Settings:
    return Settings(
        client_type=kind,
        request_timeout=Duration(seconds=3),
        subscription=Subscription(
            group=Resource(name=group),
            subscriptions=[
                SubscriptionEntry(topic=Resource(name=topic), expression=expression) for topic in topics
            ],
        ),
    )


@asynccontextmanager
async def announced(client: GrpcClient, settings: Settings, client_id: str) -> AsyncIterator[ClientCall]:
    """The open stream of a client; the client ends afterwards. The first reply is read."""
    stream = client.open("Telemetry", client_id=client_id)
    stream.send(TelemetryCommand(settings=settings))
    reply = await stream.next(20)
    assert reply.status.code == Code.OK
    try:
        yield stream
    finally:
        ending = NotifyClientTerminationRequest(group=settings.subscription.group)
        await client.ask(ending, client_id=client_id)
        stream.half_close()
