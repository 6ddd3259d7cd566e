"""Heartbeats, terminations, and clients that vanish."""

from typing import Any

import pytest
from pocketmq.grpc_endpoint.clients.clients import MAX_EARLY_OF_CLIENT, TURN_CLIENTS
from pocketmq.grpc_endpoint.messages import (
    ClientType,
    Code,
    HeartbeatRequest,
    NotifyClientTerminationRequest,
    Resource,
    Settings,
)

from broker_fakes import FakeLoop, turns
from grpc_calls import GrpcBroker, consumer, producer

UNKNOWN = (Code.UNRECOGNIZED_CLIENT_TYPE, "cannot find client settings for this client")
PUSH = HeartbeatRequest(group=Resource(name="g"), client_type=ClientType.PUSH_CONSUMER)
PRODUCER = HeartbeatRequest(client_type=ClientType.PRODUCER)


@pytest.mark.parametrize(("settings", "request_"), [(producer("t"), PRODUCER), (consumer("g"), PUSH)])
async def test_heartbeats_keep_a_member(
    grpc: GrpcBroker, clock: Any, settings: Settings, request_: HeartbeatRequest
) -> None:
    grpc.telemetry(settings)
    membership = grpc.broker.membership
    for _ in range(5):
        clock.advance(100_000)
        assert grpc.refused(request_) == (Code.OK, "OK")
        list(membership.consumers.expire(clock.wall_ms()))
        list(membership.producers.expire(clock.wall_ms()))
        grpc.clients.scan()
    assert len(membership.consumers.names()) + len(membership.producers) == 1
    assert len(grpc.clients) == 1


async def test_heartbeat_keeps_the_subscriptions_of_other_members(grpc: GrpcBroker, clock: Any) -> None:
    grpc.telemetry(consumer("g", ["t"]), client_id="c1")
    clock.advance(1)
    grpc.telemetry(consumer("g", ["u"]), client_id="c2")
    clock.advance(1)
    grpc.call(PUSH, client_id="c1")
    group = grpc.members("g")
    assert list(group.subscriptions) == ["u"]


async def test_silent_members_are_dropped_and_so_are_their_settings(grpc: GrpcBroker, loop: FakeLoop) -> None:
    gone: list[str] = []
    grpc.clients.when_gone.append(lambda peer: gone.append(peer.client_id))
    grpc.telemetry(consumer("g"), client_id="c1")
    grpc.telemetry(producer(), client_id="c2")
    grpc.clients.start()
    loop.run_for(131_000)
    assert sorted(gone) == ["c1", "c2"]
    assert len(grpc.clients) == 0
    assert grpc.broker.membership.consumers.get("g") is None
    assert grpc.refused(PUSH) == UNKNOWN
    grpc.clients.stop()


async def test_many_silent_clients_are_forgotten_in_turns_with_one_line(
    grpc: GrpcBroker, clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(2 * TURN_CLIENTS + 10):
        grpc.telemetry(producer("t"), client_id=f"c{number}")
    clock.advance(121_000)
    grpc.clients.scan()
    assert len(grpc.clients) == TURN_CLIENTS + 10
    grpc.telemetry(producer("t"), client_id="c1")  # heard of again
    await turns()
    assert len(grpc.clients) == 1
    assert len(caplog.records) == 1


async def test_member_that_the_broker_drops_is_forgotten(grpc: GrpcBroker, clock: Any) -> None:
    grpc.telemetry(producer("t", "u"))
    clock.advance(121_000)
    list(grpc.broker.membership.producers.expire(clock.wall_ms()))
    await turns()
    assert len(grpc.clients) == 0
    assert grpc.broker.membership.producers.all() == {}


async def test_termination_of_a_consumer(grpc: GrpcBroker) -> None:
    gone: list[str] = []
    grpc.clients.when_gone.append(lambda peer: gone.append(peer.client_id))
    stream = grpc.telemetry(consumer("g"))
    assert grpc.refused(NotifyClientTerminationRequest(group=Resource(name="g"))) == (Code.OK, "OK")
    assert stream.ended is None
    assert grpc.broker.membership.consumers.get("g") is None
    assert gone == ["c1"]


async def test_few_calls_of_a_client_wait_for_its_settings(grpc: GrpcBroker) -> None:
    """They go on together, in one turn of the loop."""
    got: list[Settings | None] = []
    for _ in range(MAX_EARLY_OF_CLIENT + 3):
        call = grpc.open(HeartbeatRequest).call
        grpc.clients.when_settings_known(call, 1.0, lambda settings: got.append(settings))
    assert got == [None] * 3
    grpc.telemetry(consumer("g"))
    assert len(got) == MAX_EARLY_OF_CLIENT + 3
