"""How long calls take when hosts are dead, silent or slow: a call ends when its time is over, and does not wait for a
host that it does not need."""

import asyncio
import gc
from typing import Any

import pytest
from pocketmq.client import NotReachable, PullConsumer, PullStatus, SendBufferFull, SendFailed, SendTimedOut
from pocketmq.client.connections import connection as connection_module
from pocketmq.client.connections.pool import ConnectionPool
from pocketmq.client.errors import CallTimeout, TooManyCalls
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.name_server import GetRouteInfoByTopic
from pocketmq.protocol.requests.offset import GetMaxOffset
from pocketmq.protocol.requests.pull import PullMessage
from pocketmq.protocol.requests.send import SendMessageV2
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.response_codes import ResponseCode

from client_network import (
    BLACK_HOLE,
    NAMESRV,
    SILENT,
    Answer,
    Network,
    answering,
    broker,
    in_network,
    passed,
    producer,
    reply,
    route,
    timed,
)

QUESTION = GetMaxOffset(topic="T", queue_id=0)
QUEUE = MessageQueue("T", "b", 0)
LATE = 0.05
"""Seconds beyond its time after which a call must have ended."""


# -- connecting


@in_network
async def test_callers_of_an_address_that_does_not_answer_share_one_connect(network: Network) -> None:
    network.hosts["dead:1"] = BLACK_HOLE
    pool = ConnectionPool()
    calls = (pool.call("dead:1", QUESTION, timeout_seconds=10) for _ in range(64))
    outcomes = await asyncio.gather(*map(timed, calls))
    assert max(seconds for seconds, _ in outcomes) <= 3.0 + LATE, "the limit of one connect, not of 64"
    assert all(isinstance(error, NotReachable) for _, error in outcomes)
    assert network.connects == ["dead:1"]


@in_network
async def test_the_time_of_a_call_includes_connecting(network: Network) -> None:
    network.hosts["dead:1"] = BLACK_HOLE
    seconds, error = await timed(ConnectionPool().call("dead:1", QUESTION, timeout_seconds=0.5))
    assert (seconds, type(error)) == (pytest.approx(0.5, abs=LATE), CallTimeout)
    assert str(error) == "no connection to dead:1 within 0.5 s"


@in_network
async def test_the_time_of_a_call_does_not_begin_again_after_go_away(network: Network) -> None:
    asked = []

    def leaving(command: Command) -> Answer:
        asked.append(command)
        return reply(code=ResponseCode.GO_AWAY) if len(asked) == 1 else None

    network.hosts["b:1"], network.delays["b:1"] = leaving, 0.8
    seconds, error = await timed(ConnectionPool().call("b:1", QUESTION, timeout_seconds=1))
    assert (seconds, type(error), len(asked)) == (pytest.approx(1.0, abs=LATE), CallTimeout, 2)


@in_network
async def test_a_connect_goes_on_for_others_when_a_caller_gives_up(network: Network) -> None:
    pool, loop, connected = ConnectionPool(), asyncio.get_running_loop(), asyncio.Event()
    create = loop.create_connection

    async def slow(*arguments: Any, **options: Any) -> Any:
        await connected.wait()
        return await create(*arguments, **options)

    loop.create_connection = slow  # type: ignore[method-assign]
    network.hosts["b:1"] = answering({QUESTION.code: lambda asked: reply({"offset": "7"})})
    hasty = asyncio.create_task(pool.call("b:1", QUESTION, timeout_seconds=0.5))
    patient = asyncio.create_task(pool.call("b:1", QUESTION, timeout_seconds=2))
    with pytest.raises(CallTimeout):
        await hasty
    connected.set()
    assert (await patient).offset == 7
    assert network.connects == ["b:1"]


@in_network
async def test_shutdown_ends_a_connect_and_says_so(network: Network) -> None:
    network.hosts["dead:1"] = BLACK_HOLE
    pool = ConnectionPool()
    call = asyncio.create_task(timed(pool.call("dead:1", QUESTION)))
    await passed(0.1)
    pool.close()
    await pool.until_lost()
    seconds, error = await call
    assert (seconds, type(error)) == (pytest.approx(0.1, abs=LATE), NotReachable)
    assert "the client is shut down" in str(error)


# -- sends


@in_network
async def test_a_send_to_a_black_hole_ends_in_time(network: Network) -> None:
    network.cluster("b")
    network.hosts["b:1"] = BLACK_HOLE
    async with producer() as sender:
        awaited, error = await timed(sender.send("T", b"x", timeout_ms=700))
        future = sender.send_nowait("T", b"x", timeout_ms=700)
        oneway, failure = await timed(sender.send_oneway("T", b"x"))
        with pytest.raises(SendTimedOut):
            await future
    assert (awaited, type(error), error.code) == (pytest.approx(0.7, abs=LATE), SendTimedOut, 10002)
    assert oneway <= 3.0 + LATE
    assert isinstance(failure, NotReachable)


@in_network
async def test_sends_to_a_new_topic_end_in_time_while_the_name_server_hangs(network: Network) -> None:
    network.cluster("b")
    async with producer() as sender:
        await sender.send("T", b"x")
        network.hosts[NAMESRV] = SILENT
        known = timed(sender.send("T", b"x"))
        unknown = (timed(sender.send("New", b"x", timeout_ms=500)) for _ in range(8))
        chosen = timed(sender.send("New", b"x", timeout_ms=500, queue_id=0))
        at_once, *new = await asyncio.gather(known, *unknown, chosen)
    assert at_once[0] == 0, "its route and its broker are known"
    assert [seconds for seconds, _ in new] == [pytest.approx(0.5, abs=LATE)] * 9
    assert {type(error) for _, error in new} == {SendTimedOut}
    assert network.count(GetRouteInfoByTopic.code) <= 3, (
        "one for T, one for New, and the regular refresh of T"
    )


@in_network
async def test_a_send_that_times_out_leaves_the_connection_to_others_while_it_answers(
    network: Network,
) -> None:
    network.cluster("b")
    network.delays["b:1"] = 1.0
    async with producer() as sender:
        others = [asyncio.create_task(sender.send("T", b"x")) for _ in range(10)]
        await passed(0.95)
        hasty = timed(sender.send("T", b"x", timeout_ms=150))
        (seconds, error), *results = await asyncio.gather(hasty, *others)
    assert (seconds, type(error)) == (pytest.approx(0.15, abs=LATE), SendTimedOut)
    assert {result.status.value for result in results} == {"SEND_OK"}
    assert network.count(SendMessageV2.code) == 11, "no message was sent twice"
    assert network.connects.count("b:1") == 1


@in_network
async def test_a_connection_that_was_silent_for_a_whole_timeout_is_closed(network: Network) -> None:
    network.cluster("b")
    async with producer() as sender:
        await sender.send("T", b"x")
        network.wires[-1].lost = True
        with pytest.raises(SendTimedOut):
            await sender.send_nowait("T", b"x", timeout_ms=500)
        seconds, result = await timed(sender.send("T", b"x"))
    assert (seconds, result.queue.broker_name) == (0, "b")
    assert network.connects.count("b:1") == 2


@in_network
async def test_a_full_connection_says_how_many_requests_wait(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "MAX_CALLS", 100)
    network.cluster("b")
    async with producer() as sender:
        await sender.send("T", b"x")
        sends = [sender.send_nowait("T", b"x") for _ in range(100)]
        with pytest.raises(SendBufferFull, match="100 requests to b:1 wait for replies") as caught:
            sender.send_nowait("T", b"x")
        assert isinstance(caught.value, SendFailed | BufferError)
        assert caught.value.retriable
        assert isinstance(caught.value.__cause__, TooManyCalls)
        await sender.flush()
        assert all(sent.done() for sent in sends)
        await asyncio.gather(*sends, sender.send_nowait("T", b"x"))


@in_network
async def test_sends_without_an_answer_leave_at_once_and_let_others_run(network: Network) -> None:
    network.cluster("b")
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with producer() as sender:
        await sender.send("T", b"x")
        counting = asyncio.create_task(count_turns())
        for _ in range(2_000):
            await sender.send_oneway("T", bytes(2048))
        counting.cancel()
    assert (network.count(SendMessageV2.code), turns > 50) == (2_001, True), turns
    assert network.wires[-1].writes > 50, "no more than 64 KiB wait for the end of a turn"


# -- pulls and questions


def pulling(asked: Command) -> Answer:
    found = {"suggestWhichBrokerId": "0", "nextBeginOffset": "0", "minOffset": "0", "maxOffset": "0"}
    return reply(found, code=ResponseCode.PULL_NOT_FOUND)


@in_network
async def test_a_pull_without_an_answer_closes_its_connection(network: Network) -> None:
    network.cluster("b")
    network.hosts["b:1"] = broker({PullMessage.code: pulling})
    async with PullConsumer("g", namesrv_addr=NAMESRV) as consumer:
        await consumer.pull(QUEUE, 0)
        network.wires[-1].lost = True
        lost, failure = await timed(consumer.pull(QUEUE, 0))
        found, result = await timed(consumer.pull(QUEUE, 0))
    assert (lost, type(failure)) == (pytest.approx(10, abs=LATE), CallTimeout)
    assert "did not answer PULL_MESSAGE within 10 s" in str(failure)
    assert (found, result.status) == (0, PullStatus.NO_NEW_MSG)


@in_network
async def test_a_broker_that_moved_is_found_by_a_client_in_no_group(network: Network) -> None:
    routes = network.cluster("b")
    answers = {PullMessage.code: pulling, GetMaxOffset.code: lambda asked: reply({"offset": "9"})}
    network.hosts["b:1"] = broker(answers)
    async with PullConsumer("g", namesrv_addr=NAMESRV) as consumer:
        await consumer.max_offset(QUEUE)
        network.hosts["b:2"] = network.hosts.pop("b:1")
        network.wires[-1].close()
        routes["T"] = route({"b": "b:2"})
        await asyncio.sleep(0)
        with pytest.raises(NotReachable):
            await consumer.max_offset(QUEUE)
        await passed(0.001)
        assert await consumer.max_offset(QUEUE) == 9
        assert (await consumer.pull(QUEUE, 0)).status == PullStatus.NO_NEW_MSG


@in_network
async def test_a_broker_that_cannot_be_reached_is_asked_about_once_a_second_at_most(network: Network) -> None:
    network.cluster("b")
    del network.hosts["b:1"]
    async with producer() as sender:
        for _ in range(20):
            with pytest.raises(SendFailed):
                await sender.send("T", b"x")
            await passed(0.1)
    assert network.count(GetRouteInfoByTopic.code) <= 5


@in_network
async def test_who_joins_a_question_is_not_told_that_a_topic_made_meanwhile_does_not_exist(
    network: Network,
) -> None:
    routes = network.cluster("b")
    async with producer(create_topic_key="None") as sender:
        network.delays[NAMESRV] = 0.5
        first = asyncio.create_task(timed(sender.send("New", b"x")))
        await passed(0.1)
        routes["New"] = route({"b": "b:1"})
        await asyncio.gather(*(sender.send("New", b"x") for _ in range(5)))
        assert isinstance((await first)[1], SendFailed)
    assert network.count(GetRouteInfoByTopic.code) <= 4


# -- what is not used leaves


@in_network
async def test_topics_that_are_not_sent_to_any_more_are_forgotten(network: Network) -> None:
    routes = network.cluster("b")
    routes |= {f"T{number}": route({"b": "b:1"}) for number in range(50)}
    async with producer(poll_name_server_interval=1_000) as sender:
        for number in range(50):
            await sender.send(f"T{number}", b"x")
        for _ in range(40):
            await sender.send("T", b"x")
            await passed(1)
        before = network.count(GetRouteInfoByTopic.code)
        await sender.send("T", b"x")
        await passed(3.5)
        await sender.send("T7", b"x")
        after = network.count(GetRouteInfoByTopic.code)
    assert after - before <= 5, "only T is asked for, and T7 once more"


@in_network
async def test_a_topic_of_the_settings_stays(network: Network) -> None:
    network.cluster("b")
    async with producer(poll_name_server_interval=1_000, topics=("T",)):
        await passed(100)
    assert network.count(GetRouteInfoByTopic.code) >= 95


@in_network
async def test_error_texts_name_the_address(network: Network) -> None:
    with pytest.raises(NotReachable, match=r"^cannot connect to gone:7: gone:7 refuses"):
        await ConnectionPool().call("gone:7", QUESTION)


def test_a_cancelled_future_whose_repeat_fails_leaves_nothing_unseen(network: Network) -> None:
    unseen: list[dict[str, Any]] = []

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: unseen.append(context))
        async with producer() as sender:
            await sender.send("T", b"x")
            network.hosts["b:1"] = BLACK_HOLE
            future = sender.send_nowait("T", b"x", timeout_ms=500)
            network.wires[-1].close()
            await passed(0.1)
            future.cancel()

    network.cluster("b")
    network.run(scenario)
    gc.collect()
    assert unseen == []
