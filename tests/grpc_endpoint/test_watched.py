"""The test companion sees gRPC calls: request log and faults by the name of the rpc, the ledger, virtual time."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from pocketmq.grpc_endpoint import messages as m
from pocketmq.grpc_endpoint.calls import watching
from pocketmq.grpc_endpoint.messages.decoding import decode
from pocketmq.protocol.wire.command import Command
from pocketmq.testing import Refused, RocketMQ
from pocketmq.testing.faults.network import ShapedTransport
from pocketmq.testing.faults.routes import RPC_ROUTE, RouteRule, changed_reply, with_brokers
from pocketmq.testing.faults.sending import ReadyReply

from grpc_client import ClientCall, GrpcClient, RpcError, encode
from grpc_companion import T, acked, announce, half, handle_of, hidden, receive, received, sent


@pytest.fixture
async def client(rocketmq: RocketMQ) -> AsyncIterator[GrpcClient]:
    async with GrpcClient.connected(rocketmq.grpc_endpoint) as client:
        yield client


async def test_the_request_log_names_the_rpc_and_what_it_is_about(
    rocketmq: RocketMQ, client: GrpcClient
) -> None:
    await announce(client)
    await client.ask(sent())
    with pytest.raises(RpcError):
        await client.open("SyncLiteSubscription", b"").all()
    await client.ask(m.QueryRouteRequest(topic=m.Resource(name="not here!")))
    (found,) = rocketmq.requests.find(code="SendMessage", topic="orders", client_id="test@1@0@a")
    assert (found.name, found.response, found.broker) == ("SendMessage", 0, "broker-a")
    assert rocketmq.requests.find(code="QueryRoute", response="ILLEGAL_TOPIC")
    assert [one.oneway for one in rocketmq.requests.find(code="Telemetry")] == [True]
    assert str(found) == (
        f"#{found.id} SendMessage topic=orders client_id=test@1@0@a broker=broker-a -> SUCCESS"
    )


async def test_a_function_decides_and_a_response_code_has_its_code(
    rocketmq: RocketMQ, client: GrpcClient
) -> None:
    def only_once(request: object) -> object:
        raise Refused("MESSAGE_BODY_EMPTY", "no")

    rocketmq.faults.control("SendMessage", only_once)
    assert (await client.ask(sent())).status == m.Status(code=m.Code.MESSAGE_BODY_EMPTY, message="no")
    rocketmq.faults.refuse(code="SendMessage", response="SYSTEM_BUSY")
    assert (await client.ask(sent())).status.code == m.Code.TOO_MANY_REQUESTS
    assert (await client.ask(sent())).status == m.OK
    rocketmq.faults.check()


async def test_what_cannot_be_done_to_a_call_is_refused_and_hits_none(
    rocketmq: RocketMQ, client: GrpcClient
) -> None:
    """A rule that counted a hit and did nothing would let a test pass for the wrong reason."""
    faults = rocketmq.faults
    for code in ("SendMessage", "Telemetry", 1_000_004):
        with pytest.raises(
            ValueError, match=r"^code must not be \w+ for duplicate: a gRPC call has one answer"
        ):
            faults.duplicate(code=code)
    with pytest.raises(ValueError, match=r"^code must not be SendMessage for alter: .* no opaque number"):
        faults.alter(code="SendMessage", opaque=7)
    assert faults.rules == []
    twice = faults.duplicate(topic="orders", times=None)
    await client.ask(sent())
    assert twice.hits == []
    await asyncio.to_thread(rocketmq.send, "orders", "one")
    assert [hit.name for hit in twice.hits] == ["SEND_MESSAGE_V2"]


async def test_swallowed_telemetry_is_not_kept_for_ever(
    rocketmq: RocketMQ, client: GrpcClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "MOST_MESSAGES", 5)
    rocketmq.faults.silence(code="Telemetry", times=20)
    stream = client.open("Telemetry")
    for _ in range(20):
        stream.send(m.TelemetryCommand())
    await client.ping()
    (port,) = rocketmq.server.node.side_servers
    (known,) = [one for clients in port._clients.values() for one in clients.values()]
    assert len(known._calls) == 5


async def test_the_ledger_judges_a_grpc_consumer(rocketmq: RocketMQ, client: GrpcClient) -> None:
    await announce(client)
    for body in (b"one", b"two"):
        await client.ask(sent(body))
    first, second = await received(client)
    assert (await client.ask(acked([handle_of(first)]))).status == m.OK
    assert (await client.ask(hidden(second, 1000))).status == m.OK
    await asyncio.to_thread(rocketmq.clock.advance, 10)
    (again,) = await received(client)
    assert (await client.ask(acked([handle_of(again)]))).status == m.OK
    verdict = await asyncio.to_thread(rocketmq.ledger.verdict, "orders", "billing")
    assert verdict.is_clean(), verdict.report()


async def test_the_ledger_finds_what_a_fault_took_from_a_grpc_consumer(
    rocketmq: RocketMQ, client: GrpcClient
) -> None:
    """A swallowed answer is no delivery; the message comes again when its invisible time is over."""
    await announce(client)
    await client.ask(sent())
    rocketmq.faults.silence(code="ReceiveMessage", execute=True)
    lost = client.open("ReceiveMessage", receive())
    await client.ping()
    lost.cancel()
    verdict = await asyncio.to_thread(rocketmq.ledger.verdict, "orders", "billing")
    assert len(verdict.unread) == 1
    await asyncio.to_thread(rocketmq.clock.advance, 60)
    (again,) = await received(client)
    assert again.body == b"hi"
    verdict = await asyncio.to_thread(rocketmq.ledger.verdict, "orders", "billing")
    assert verdict.is_clean(), verdict.report()


# -- commands of the server


async def orphan(client: GrpcClient, stream: ClientCall) -> str | None:
    """The transaction that the server has asked about by now."""
    await client.ping()
    if stream._messages.empty():
        return None
    command: m.TelemetryCommand = await stream.next()
    return command.recover_orphaned_transaction_command.transaction_id


async def test_the_check_of_a_transaction_is_logged_and_delayed_like_a_remoting_clients(
    rocketmq: RocketMQ, client: GrpcClient
) -> None:
    stream = await half(rocketmq, client)
    rocketmq.faults.delay(code="CHECK_TRANSACTION_STATE", seconds=20)
    while not rocketmq.requests.count(code="CHECK_TRANSACTION_STATE"):
        await asyncio.to_thread(rocketmq.clock.advance, 10)
    (asked,) = rocketmq.requests.find(code="CHECK_TRANSACTION_STATE", client_id="test@1@0@a")
    assert (asked.to_client, asked.oneway, asked.broker) == (True, True, "broker-a")
    assert b"half" in asked.body
    assert await orphan(client, stream) is None
    await asyncio.to_thread(rocketmq.clock.advance, 20)
    assert await orphan(client, stream) == "half"
    rocketmq.faults.check()


async def test_a_swallowed_check_is_asked_again(rocketmq: RocketMQ, client: GrpcClient) -> None:
    stream = await half(rocketmq, client)
    rocketmq.faults.silence(code="CHECK_TRANSACTION_STATE", client_id="test@1@0@a")
    while not rocketmq.requests.count(code="CHECK_TRANSACTION_STATE"):
        await asyncio.to_thread(rocketmq.clock.advance, 10)
    assert await orphan(client, stream) is None
    while rocketmq.requests.count(code="CHECK_TRANSACTION_STATE") < 2:
        await asyncio.to_thread(rocketmq.clock.advance, 10)
    assert await orphan(client, stream) == "half"
    rocketmq.faults.check()


async def test_a_check_may_arrive_twice_and_end_a_connection(rocketmq: RocketMQ, client: GrpcClient) -> None:
    stream = await half(rocketmq, client)
    rocketmq.faults.duplicate(code="CHECK_TRANSACTION_STATE")
    while not rocketmq.requests.count(code="CHECK_TRANSACTION_STATE"):
        await asyncio.to_thread(rocketmq.clock.advance, 10)
    assert [await orphan(client, stream) for _ in range(3)] == ["half", "half", None]
    rocketmq.faults.disconnect(code="CHECK_TRANSACTION_STATE")
    await asyncio.to_thread(rocketmq.clock.advance, 90)
    await client.is_closed.wait()
    rocketmq.faults.check()


async def test_watchers_keep_a_bounded_number_of_clients_of_a_connection(
    rocketmq: RocketMQ, client: GrpcClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection may name another client with each call."""
    monkeypatch.setattr(watching, "MOST_CLIENTS", 5)
    for number in range(20):
        reply = await client.ask(m.QueryRouteRequest(topic=T), client_id=f"client-{number}")
        assert reply.status == m.OK
    found = rocketmq.requests.find(code="QueryRoute")
    assert [one.client_id for one in found] == [*(f"client-{number}" for number in range(5)), *[None] * 15]
    beside = rocketmq.server.node.side_servers[0]
    assert [len(known) for known in beside._clients.values()] == [6]  # type: ignore[attr-defined]


async def test_a_slow_or_half_open_network_is_that_of_one_client(
    rocketmq: RocketMQ, client: GrpcClient
) -> None:
    loop = asyncio.get_running_loop()
    async with GrpcClient.connected(rocketmq.grpc_endpoint) as other:
        rule = rocketmq.faults.network(client="test@1@0@a", latency=0.2)
        began = loop.time()
        assert (await client.ask(sent(b"slow"))).status == m.OK
        assert loop.time() - began >= 0.2
        rule.remove()
        rule = rocketmq.faults.network(client="test@1@0@a", latency=1000)
        assert (await other.ask(sent(b"quick"), client_id="other@1@0@a")).status == m.OK
        rule.remove()
        rule = rocketmq.faults.network(client="test@1@0@a", half_open=True)
        lost = client.open("SendMessage", sent(b"lost"))
        assert (await other.ask(sent(b"heard"), client_id="other@1@0@a")).status == m.OK
        assert not lost.is_ended
        rule.remove()
    bodies = {one.text for one in await asyncio.to_thread(rocketmq.messages, "orders")}
    assert bodies == {"slow", "quick", "heard"}


async def test_the_bytes_of_two_clients_of_one_connection_are_slowed_once(
    rocketmq: RocketMQ, client: GrpcClient
) -> None:
    for_all = rocketmq.faults.network(latency=0.01)
    for name in ("one", "two"):
        assert (await client.ask(m.QueryRouteRequest(topic=T), client_id=name)).status == m.OK
    beside: Any = rocketmq.server.node.side_servers[0]
    (connection,) = beside._clients
    shaped = connection.out.transport
    assert isinstance(shaped, ShapedTransport)
    assert not isinstance(shaped._below, ShapedTransport)
    of_two = rocketmq.faults.network(client="two", latency=0.02)
    assert (await client.ask(m.QueryRouteRequest(topic=T), client_id="two")).status == m.OK
    assert shaped._line.shape.latency == pytest.approx(0.03), "the worst of both"
    of_two.remove()
    assert shaped._line.shape.latency == pytest.approx(0.01)
    for_all.remove()
    assert shaped._line.shape.latency == 0


def test_a_stale_route_has_the_queues_of_slaves_too() -> None:
    """A QueryRoute names each queue once for the master and once for each slave."""
    queues = [
        m.MessageQueue(topic=T, id=number, broker=m.Broker(name="b0", id=broker_id))
        for broker_id in (0, 1)
        for number in range(4)
    ]
    route = encode(m.QueryRouteResponse(status=m.OK, message_queues=queues))
    rule = RouteRule(1, "route", with_brokers("orders", None, 2), {}, lambda rule: None)
    request: Any = SimpleNamespace(code=RPC_ROUTE, topic="orders", fields={}, version=0)
    changed = changed_reply([rule], request, "", {}, ReadyReply(Command(0, 0, 1), route))
    assert changed is not None
    found = decode(m.QueryRouteResponse, changed.body).message_queues
    assert [(queue.broker.id, queue.id) for queue in found] == [(0, 0), (0, 1), (1, 0), (1, 1)]


async def test_routes_can_be_stale_and_without_their_broker(rocketmq: RocketMQ, client: GrpcClient) -> None:
    rule = rocketmq.faults.route("orders", queues=3)
    reply = await client.ask(m.QueryRouteRequest(topic=T))
    assert [queue.id for queue in reply.message_queues] == [0, 1, 2]
    assert len({str(queue.broker.endpoints) for queue in reply.message_queues}) == 1
    assert [hit.name for hit in rule.hits] == ["QueryRoute"]
    rule.remove()
    hidden_broker = rocketmq.faults.hide_broker("broker-a")
    reply = await client.ask(m.QueryRouteRequest(topic=T))
    assert (reply.status.code, len(reply.message_queues)) == (m.Code.TOPIC_NOT_FOUND, 0)
    assert (await client.ask(sent())).status == m.OK, "connections stay"
    hidden_broker.remove()
    assert len((await client.ask(m.QueryRouteRequest(topic=T))).message_queues) == 1


async def test_a_reply_with_more_values_than_a_request_may_have_is_seen(
    rocketmq: RocketMQ, client: GrpcClient
) -> None:
    """Each entry of an acknowledgement has three values, that of its reply five."""
    await announce(client)
    reply = await client.ask(acked(["x y z"] * 1_600))
    assert len(reply.entries) == 1_600
    assert rocketmq.requests.count(code="AckMessage") == 1
