"""gRPC clients under the test companion: each kind of fault on each of their rpcs, `/metrics`, the ledger."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from pocketmq.grpc_endpoint import messages as m
from pocketmq.grpc_endpoint.messages.proto import Message
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.testing import RocketMQ

from grpc_client import ClientCall, GrpcClient
from grpc_companion import T, acked, announce, given_up, handle_of, hidden, receive, received, sent, settings

RPCS = (
    "SendMessage",
    "ReceiveMessage",
    "AckMessage",
    "ChangeInvisibleDuration",
    "ForwardMessageToDeadLetterQueue",
    "Telemetry",
)


@pytest.fixture
async def client(rocketmq: RocketMQ) -> AsyncIterator[GrpcClient]:
    """A member of the group, with one message stored."""
    async with GrpcClient.connected(rocketmq.grpc_endpoint) as client:
        await announce(client)
        await client.ask(sent())
        yield client


async def opened(client: GrpcClient, name: str) -> ClientCall:
    """A call of this rpc. For all but a receive the message is received first."""
    if name == "Telemetry":
        stream = client.open(name)
        stream.send(settings())
        return stream
    if name in ("ReceiveMessage", "SendMessage"):
        return client.open(name, receive() if name == "ReceiveMessage" else sent(b"another"))
    (message,) = await received(client)
    requests: dict[str, Message] = {
        "AckMessage": acked([handle_of(message)]),
        "ChangeInvisibleDuration": hidden(message, 1000),
        "ForwardMessageToDeadLetterQueue": given_up(message),
    }
    return client.open(name, requests[name])


async def advance(rocketmq: RocketMQ, seconds: float) -> None:
    await asyncio.to_thread(rocketmq.clock.advance, seconds)


async def still_there(rocketmq: RocketMQ, client: GrpcClient) -> bool:
    """Whether the message is delivered (again), once no invisible time hides it."""
    await advance(rocketmq, 60)
    return [message.body for message in await received(client)] == [b"hi"]


# -- faults


@pytest.mark.parametrize("name", RPCS)
async def test_a_refused_call_of_a_consumer_gets_the_code_and_does_nothing(
    rocketmq: RocketMQ, client: GrpcClient, name: str
) -> None:
    rule = rocketmq.faults.refuse(
        code=name, client_id="test@1@0@a", response="TOO_MANY_REQUESTS", remark="later"
    )
    call = await opened(client, name)
    assert [one.status for one in await call.all()] == [
        m.Status(code=m.Code.TOO_MANY_REQUESTS, message="later")
    ]
    (hit,) = rule.hits
    assert (hit.name, hit.response) == (name, None if name == "Telemetry" else m.Code.TOO_MANY_REQUESTS)
    assert await still_there(rocketmq, client)
    rocketmq.faults.check()


@pytest.mark.parametrize("name", RPCS)
async def test_a_delayed_call_of_a_consumer_is_answered_by_the_servers_clock(
    rocketmq: RocketMQ, client: GrpcClient, name: str
) -> None:
    rocketmq.faults.delay(code=name, seconds=7)
    call = await opened(client, name)
    await client.ping()
    await advance(rocketmq, 6.9)
    await client.ping()
    assert not call.is_ended
    assert call.headers == ({} if name != "Telemetry" else call.headers)
    other = await client.ask(m.QueryRouteRequest(topic=T))
    assert other.status == m.OK, "other calls of the connection are not held up"
    await advance(rocketmq, 0.2)
    first = await call.next()
    assert first.status.code == m.Code.OK
    rocketmq.faults.check()


@pytest.mark.parametrize("name", RPCS)
async def test_a_swallowed_call_of_a_consumer_is_never_answered_and_does_nothing(
    rocketmq: RocketMQ, client: GrpcClient, name: str
) -> None:
    rocketmq.faults.silence(code=name)
    call = await opened(client, name)
    await client.ping()
    assert await still_there(rocketmq, client)
    assert not call.is_ended
    rocketmq.faults.check()


@pytest.mark.parametrize("name", RPCS[1:-1])
async def test_a_call_whose_answer_is_swallowed_has_done_its_work(
    rocketmq: RocketMQ, client: GrpcClient, name: str
) -> None:
    rocketmq.faults.silence(code=name, execute=True)
    call = await opened(client, name)
    await client.ping()
    assert not call.is_ended
    call.cancel()
    hides = name in ("ReceiveMessage", "ChangeInvisibleDuration")
    await advance(rocketmq, 60)
    if hides:
        (message,) = await received(client)
        assert message.system_properties.delivery_attempt == 2
    else:
        waiting = client.open("ReceiveMessage", receive())
        await client.ping()
        await advance(rocketmq, 21)
        assert (await waiting.next()).status.code == m.Code.MESSAGE_NOT_FOUND


@pytest.mark.parametrize("name", RPCS)
async def test_a_call_of_a_consumer_ends_with_its_connection(
    rocketmq: RocketMQ, client: GrpcClient, name: str
) -> None:
    rocketmq.faults.disconnect(code=name)
    call = await opened(client, name)
    await client.is_closed.wait()
    assert call.status == -1
    rocketmq.faults.check()
    async with GrpcClient.connected(rocketmq.grpc_endpoint) as again:
        assert await still_there(rocketmq, again)


async def test_a_reply_is_cut_in_its_middle(rocketmq: RocketMQ, client: GrpcClient) -> None:
    await client.ask(sent(b"x" * 1000))
    rocketmq.faults.disconnect(code="ReceiveMessage", within_body=True)
    call = client.open("ReceiveMessage", receive())
    await client.is_closed.wait()
    assert call.headers[":status"] == "200"
    assert (call.status, client.goaway) == (-1, None)
    rocketmq.faults.check()


@pytest.mark.parametrize("how", [{"within_body": True}, {"execute": True}])
async def test_messages_of_a_reply_that_was_cut_are_delivered_again_soon(
    rocketmq: RocketMQ, client: GrpcClient, how: dict[str, bool]
) -> None:
    """As those of any reply that its client could not read, and that delivery does not count."""
    rocketmq.faults.disconnect(code="ReceiveMessage", **how)
    client.open("ReceiveMessage", receive())
    await client.is_closed.wait()
    async with GrpcClient.connected(rocketmq.grpc_endpoint) as again:
        await announce(again)
        await advance(rocketmq, 5)
        (message,) = await received(again)
    assert message.system_properties.delivery_attempt == 1


async def test_cancelled_calls_leave_nothing_with_the_watchers(
    rocketmq: RocketMQ, client: GrpcClient
) -> None:
    """Neither those that wait, nor those that a fault keeps, nor those whose deadline is past."""
    await received(client)
    rocketmq.faults.delay(code="AckMessage", seconds=3600, times=None)
    for _ in range(20):
        client.open("ReceiveMessage", receive()).cancel()
        client.open("AckMessage", acked(["0 1 2 0 0 broker-a 0 0 0"])).cancel()
    late = client.open("ReceiveMessage", receive(), timeout="10S")
    await client.ping()
    await advance(rocketmq, 60)
    await client.ping()
    assert late.is_ended
    assert len(rocketmq.requests.find(code="AckMessage", response=None)) == 20
    assert unanswered(rocketmq) == 0


def unanswered(rocketmq: RocketMQ) -> int:
    """Calls that the watchers of the gRPC port still expect an answer of."""
    beside = rocketmq.server.node.side_servers[0]
    known = beside._clients.values()  # type: ignore[attr-defined]
    return sum(len(one._calls) for clients in known for one in clients.values())


# -- metrics


async def test_metrics_count_the_calls_of_a_consumer(rocketmq: RocketMQ, client: GrpcClient) -> None:
    (message,) = await received(client)
    assert (await client.ask(acked([handle_of(message)]))).status == m.OK
    await client.ask(hidden(message, 13 * 3600 * 1000))
    waiting = client.open("ReceiveMessage", receive())
    await client.ping()
    await advance(rocketmq, 21)
    await waiting.all()
    answered = rocketmq.server.node.side_servers[0].answered
    assert answered == {
        ("Telemetry", "OK"): 1,
        ("SendMessage", "OK"): 1,
        ("ReceiveMessage", "OK"): 1,
        ("ReceiveMessage", "MESSAGE_NOT_FOUND"): 1,
        ("AckMessage", "OK"): 1,
        ("ChangeInvisibleDuration", "ILLEGAL_INVISIBLE_TIME"): 1,
    }


# -- ledger


async def test_a_message_that_was_never_delivered_and_became_a_dead_letter_is_lost(
    rocketmq: RocketMQ, client: GrpcClient
) -> None:
    """Its first answer was swallowed; with the second one its attempts were used up."""
    config = SubscriptionGroupConfig(group_name="billing", retry_max_times=0)
    server = rocketmq.server
    await asyncio.to_thread(server.call, server.node.broker.groups.update, config)
    await announce(client)
    rocketmq.faults.silence(code="ReceiveMessage", execute=True)
    swallowed = client.open("ReceiveMessage", receive())
    await client.ping()
    swallowed.cancel()
    await advance(rocketmq, 60)
    assert await received(client) == []
    verdict = await asyncio.to_thread(rocketmq.ledger.verdict, "orders", "billing")
    assert [one.message_id for one in verdict.lost] == ["IDb'hi'"]
    assert [one.name for one in verdict.lost[0].requests][-1] == "ReceiveMessage"
    assert verdict.unread == []
    history = await asyncio.to_thread(rocketmq.ledger.message, "IDb'hi'")
    assert history.acknowledged
    assert history.deliveries == []
    assert history.dead_lettered is not None
    assert history.dead_lettered.startswith("its retries are used up")


async def test_a_message_given_up_after_its_delivery_is_neither_lost_nor_unread(
    rocketmq: RocketMQ, client: GrpcClient
) -> None:
    config = SubscriptionGroupConfig(group_name="billing", retry_max_times=0)
    server = rocketmq.server
    await asyncio.to_thread(server.call, server.node.broker.groups.update, config)
    await announce(client)
    assert len(await received(client)) == 1
    await advance(rocketmq, 60)
    assert await received(client) == []
    for verdict in await asyncio.to_thread(rocketmq.ledger.verdicts):
        assert verdict.is_clean(), (
            verdict.report()
        )  # its copy in the retry topic was not meant for a delivery
    history = await asyncio.to_thread(rocketmq.ledger.message, "IDb'hi'")
    assert (history.acknowledged, len(history.deliveries)) == (True, 1)
    assert history.dead_lettered is not None
    (fault_free,) = rocketmq.requests.find(code="ReceiveMessage", response="MESSAGE_NOT_FOUND")
    assert "givenUp" in fault_free.reply_fields


async def test_a_message_that_the_server_filtered_is_not_missed(rocketmq: RocketMQ) -> None:
    """The Java hashes of Aa and BB are equal: only the endpoint sees that the tag is another one."""
    async with GrpcClient.connected(rocketmq.grpc_endpoint) as client:
        await announce(client, "Aa")
        await client.ask(sent(b"other", tag="BB"))
        assert await received(client, tags="Aa") == []
        await client.ask(sent(b"wanted", tag="Aa"))
        (message,) = await received(client, tags="Aa")
        await client.ask(acked([handle_of(message)]))
    verdict = await asyncio.to_thread(rocketmq.ledger.verdict, "orders", "billing")
    assert verdict.is_clean(), verdict.report()
    assert (await asyncio.to_thread(rocketmq.ledger.message, "IDb'other'")).acknowledged


async def test_of_an_answer_of_several_results_the_good_ones_are_acknowledged(
    rocketmq: RocketMQ, client: GrpcClient
) -> None:
    await client.ask(sent(b"second"))
    first, second = await received(client)
    expired = handle_of(second).split(" ")
    expired[2] = "1"
    await advance(rocketmq, 1)
    reply = await client.ask(acked([handle_of(first), " ".join(expired)]))
    assert reply.status.code == m.Code.MULTIPLE_RESULTS
    histories = [
        await asyncio.to_thread(rocketmq.ledger.message, one.system_properties.message_id)
        for one in (first, second)
    ]
    assert [one.acknowledged for one in histories] == [True, False]
    await advance(rocketmq, 60)
    (again,) = await received(client)
    assert again.body == b"second"


async def test_a_dead_letter_of_a_client_says_why(rocketmq: RocketMQ, client: GrpcClient) -> None:
    (message,) = await received(client)
    assert (await client.ask(given_up(message))).status.code == m.Code.OK
    history = await asyncio.to_thread(rocketmq.ledger.message, "IDb'hi'")
    assert (history.sent_back, history.acknowledged) == (1, True)
    assert history.dead_lettered == "sent back with delay level -1"
    assert [one.body for one in await asyncio.to_thread(rocketmq.dead_letters, "billing")] == [b"hi"]
