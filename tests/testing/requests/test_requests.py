"""The request log: what an entry says, finding, counting, waiting, and its bounds."""

import asyncio
import itertools
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.broker.network.dispatch import Handlers
from pocketmq.broker.network.server import Server
from pocketmq.broker.network.watch import Watched
from pocketmq.client import Producer, PushConsumer
from pocketmq.protocol.requests.send import SendMessage, SendMessageV2
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import encode_frame
from pocketmq.testing import RocketMQ, WouldBlockError
from pocketmq.testing.requests.logged_request import LoggedConnection
from pocketmq.testing.requests.request_log import ENTRY_BYTES, LogWatcher, RequestLog
from pocketmq.testing.requests.requests import Requests

from frames_client import Raw
from testing_acts import pull_words

SEND = "SEND_MESSAGE_V2"


def test_an_entry_has_the_long_names_of_a_short_send(one: RocketMQ) -> None:
    orders = one.topic("orders", queues=1)
    one.send(orders, "order 17", tags="created", queue_id=0)
    [sent] = one.requests.find(code=SEND)
    assert (sent.code, sent.name, sent.topic, sent.queue_id) == (310, SEND, orders, 0)
    assert (sent.group, sent.client_id, sent.oneway, sent.body) == ("test", None, False, b"order 17")
    assert sent.broker == one.server.broker.config.broker_name
    assert sent.fields["producerGroup"] == "test"
    assert "created" in sent.fields["properties"]
    assert (sent.response, sent.remark, sent.reply_fields["queueOffset"]) == (0, None, "0")
    assert str(sent).endswith("-> SUCCESS")
    assert set(SendMessageV2.__struct_encode_fields__).isdisjoint(sent.fields)
    assert sent.fields.keys() <= set(SendMessage.__struct_encode_fields__)


def test_an_entry_says_when_it_arrived_and_when_it_was_answered(
    one: RocketMQ, topic: str, client: Raw
) -> None:
    one.faults.delay(code=SEND, seconds=0.2)
    one.faults.silence(code="GET_MAX_OFFSET")
    one.send(topic, "late")
    one.send(topic, "at once")
    client.send(30, topic=topic, queueId=0)
    [silenced] = one.requests.wait_for(code="GET_MAX_OFFSET")
    late, at_once = one.requests.find(code=SEND)
    assert silenced.answered_ms is None
    assert late.answered_ms is not None
    assert at_once.answered_ms is not None
    assert late.answered_ms - late.at_ms >= 199  # both are whole milliseconds
    assert late.at_ms <= late.answered_ms <= at_once.at_ms <= at_once.answered_ms


async def test_requests_of_clients_carry_their_client_id(one: RocketMQ) -> None:
    orders, group = one.topic("orders"), one.group("billing")
    async with PushConsumer(group, lambda message: None, namesrv_addr=one.namesrv_addr) as consumer:
        consumer.subscribe(orders)
        found = await one.requests.aio.wait_for(code="PULL_MESSAGE", group=group, topic=orders)
        client_id = consumer.client_id
    assert {request.client_id for request in found} == {client_id}
    assert one.requests.count(code="GET_ROUTEINFO_BY_TOPIC", topic=orders) > 0
    [route, *_] = one.requests.find(code="GET_ROUTEINFO_BY_TOPIC", topic=orders)
    assert (route.broker, route.response) == (None, 0)


def test_every_word_narrows_the_search(one: RocketMQ, client: Raw) -> None:
    for queue_id in (0, 1):
        client.ask(30, topic="a", queueId=queue_id)
    client.ask(30, queueId=5)
    client.send(30, flag=2, topic="a", queueId=0)
    client.ask(31, topic="a", queueId=0)
    find = one.requests.find
    assert len(find()) == one.requests.count() == len(one.requests) == 5
    assert [request.queue_id for request in find(code="GET_MAX_OFFSET", oneway=False)] == [0, 1, 5]
    assert [request.queue_id for request in find(response="SYSTEM_ERROR")] == [5]
    assert one.requests.count(topic="a") == 4
    assert one.requests.count(oneway=True, response=0) == 0
    assert one.requests.count(where=lambda request: request.queue_id == 1) == 1
    assert find(broker="another") == []
    with pytest.raises(ValueError, match="code must be the official name"):
        find(code="MAX_OFFSET")
    with pytest.raises(TypeError, match="no keyword 'topics'"):
        one.requests.count(topics="a")  # type: ignore[call-arg]


# -- waiting


def test_a_wait_returns_all_that_match(one: RocketMQ, orders: str) -> None:

    def send_later() -> None:
        for _ in range(3):
            time.sleep(0.01)
            one.send(orders, "x")

    sender = threading.Thread(target=send_later)
    sender.start()
    found = one.requests.wait_for(code=SEND, topic=orders, count=3, response="SUCCESS")
    sender.join()
    assert [request.response for request in found] == [0, 0, 0]


def test_a_wait_in_vain_lists_the_five_nearest(one: RocketMQ, orders: str) -> None:
    for _ in range(7):
        one.send(orders, "x")
    with pytest.raises(AssertionError) as failed:
        one.requests.wait_for(code=SEND, topic="ordres", timeout_seconds=0.01)
    text = str(failed.value)
    assert "0 of 1 requests with code=SEND_MESSAGE_V2 topic=ordres arrived within 0.01 s" in text
    assert text.count(f"SEND_MESSAGE_V2 topic={orders}") == 5


def test_none_fails_at_once_if_one_is_there(one: RocketMQ, orders: str) -> None:
    one.requests.none(topic=orders)
    one.send(orders, "x")
    one.requests.none(topic="other", during_seconds=0.01)
    with pytest.raises(AssertionError, match="1 requests match topic=orders"):
        one.requests.none(topic=orders, during_seconds=60)


def test_none_watches_as_long_as_it_is_told(one: RocketMQ, orders: str) -> None:
    timer = threading.Timer(0.02, one.send, (orders, "x"))
    timer.start()
    with pytest.raises(AssertionError, match="1 requests match"):
        one.requests.none(topic=orders, during_seconds=5)
    timer.join()


async def test_a_wait_does_not_block_a_running_loop(one: RocketMQ, orders: str) -> None:
    with pytest.raises(WouldBlockError, match=r"await rocketmq\.requests\.aio\.wait_for"):
        one.requests.wait_for(topic=orders)
    waiting = asyncio.create_task(one.requests.aio.wait_for(code=SEND, topic=orders))
    async with Producer("shop", namesrv_addr=one.namesrv_addr) as producer:
        await producer.send(orders, b"x")
    assert len(await waiting) == 1
    assert len(one.requests.wait_for(code=SEND)) == 1, "what is there already needs no wait"
    with pytest.raises(AssertionError):
        await one.requests.aio.none(code=SEND)
    with pytest.raises(AssertionError, match="0 of 1"):
        await one.requests.aio.wait_for(topic="other", timeout_seconds=0.01)


@pytest.mark.parametrize("words", [{"count": 0}, {"timeout_seconds": -1}, {"count": 1.5}])
def test_a_wait_refuses_wrong_limits(one: RocketMQ, words: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be a"):
        one.requests.wait_for(**words)  # type: ignore[arg-type]


# -- bounds


class Nobody:
    """A connection as the log sees it."""

    peer = "nobody:1"


def filled(log: RequestLog, count: int, body: bytes = b"") -> LogWatcher:
    watcher = LogWatcher(log, "b0")
    connection: Watched = Nobody()  # type: ignore[assignment]
    for number in range(count):
        command = Command(30, number, fields={"topic": "t"}, body=body)
        watcher.received(connection, command)
        watcher.answering(connection, command, Command(0, number, 1), None)
    return watcher


def at_once(function: Callable[[], None]) -> None:
    function()


def test_the_oldest_leave_a_full_log() -> None:
    log = RequestLog(entries=10)
    filled(log, 25)
    requests = Requests(log, at_once)
    assert (requests.count(), requests.dropped) == (10, 15)
    assert [request.id for request in requests] == list(range(16, 26))
    with pytest.raises(AssertionError, match="15 left the log, which was full"):
        requests.wait_for(topic="other", timeout_seconds=0)
    assert requests.report(2).startswith("15 older requests left the log, which was full\n  #24 ")


def test_the_log_is_bounded_by_bytes_too() -> None:
    log = RequestLog(max_bytes=5 * (ENTRY_BYTES + 1000))
    filled(log, 8, b"x" * 1000)
    assert (len(log), log.dropped) == (5, 3)
    filled(log, 1, b"x" * 100_000)
    assert len(log) == 1


def test_a_send_on_the_short_way_is_decoded_when_somebody_looks() -> None:
    log = RequestLog()
    connection: Watched = Nobody()  # type: ignore[assignment]
    fields = {"a": "g", "b": "orders", "e": "3"}
    request = encode_frame(Command(310, 5, fields=fields, body=b"order"))
    reply = encode_frame(Command(0, 5, 1, fields={"queueOffset": "7"}))
    log.add_answered(LogWatcher(log, "b0").connection_of(connection), request * 3, reply * 3, 3)
    entry, _, other = Requests(log, at_once).find(code=SEND)
    assert (entry.id, other.id, len(log)) == (1, 3, 3)
    assert entry != other
    assert (entry.topic, entry.queue_id, entry.group, entry.body) == ("orders", 3, "g", b"order")
    assert (entry.response, entry.reply_fields) == (0, {"queueOffset": "7"})


@given(st.lists(st.integers(1, 16), max_size=30), st.integers(1, 40), st.booleans())
def test_sends_that_are_kept_together_leave_one_by_one(counts: list[int], most: int, mixed: bool) -> None:
    log = RequestLog(entries=most)
    watcher = LogWatcher(log, "b0")
    connection: Watched = Nobody()  # type: ignore[assignment]
    request, reply = encode_frame(Command(310, 5, fields={"b": "t"})), encode_frame(Command(0, 5, 1))
    for count in counts:
        log.add_answered(watcher.connection_of(connection), request * count, reply * count, count)
        if mixed:
            watcher.received(connection, Command(30, 1))
    total = sum(counts) + mixed * len(counts)
    requests = Requests(log, at_once)
    assert (requests.count(), requests.dropped) == (min(most, total), max(0, total - most))
    assert [entry.id for entry in requests] == list(range(max(1, total - most + 1), total + 1))
    assert [entry.id for entry in log.last(3)] == [entry.id for entry in requests][-3:]
    assert [entry.id for entry in log.after(total - 2)] == [
        entry.id for entry in requests if entry.id > total - 2
    ]


async def test_what_a_closed_connection_left_open_is_forgotten() -> None:
    log = RequestLog()
    watcher = LogWatcher(log, "b0")
    server = Server("log", version=1)
    server.add_watcher(watcher)
    port = await server.bind("127.0.0.1", 0)
    await server.serve(Handlers("log"))
    opened = await server.connect(f"127.0.0.1:{port}")
    opened.close()
    await server.close()
    assert watcher._connections == {}
    assert watcher._unanswered == {}


def test_a_request_under_way_at_the_end_of_its_connection_is_forgotten() -> None:
    """One entry for each client that ends so would stay for ever."""
    watcher = LogWatcher(RequestLog(), "b0")
    for number in range(3):
        connection: Watched = Nobody()  # type: ignore[assignment]
        watcher.received(connection, Command(11, number, fields={"topic": "t"}))
        watcher.closed(connection)
    assert watcher._unanswered == {}
    assert watcher._last is None


def test_the_log_is_emptied_where_it_is_written(one: RocketMQ) -> None:
    """In another thread it would be emptied in the middle of an addition, and its counts would stay wrong."""
    threads: list[threading.Thread] = []
    log = one.server.watched.log
    clear = log.clear

    def noting() -> None:
        threads.append(threading.current_thread())
        clear()

    log.clear = noting  # type: ignore[method-assign]
    one.send("orders", "one")
    one.requests.clear()
    assert [thread.name for thread in threads] == ["pocketmq-embedded"]
    assert (len(one.requests), one.requests.count(), one.requests.find()) == (0, 0, [])


# -- for the HTTP port


def as_json(requests: Requests, **words: Any) -> list[dict[str, Any]]:
    found = requests.one_by_one(**{"after": 0, "newest_first": False, **words})
    return [msgspec.to_builtins(request.as_json()) for request in found if request is not None]


def test_entries_are_json_with_names(one: RocketMQ, orders: str) -> None:
    one.send(orders, b"\xff")
    one.send(orders, "text")
    listed = as_json(one.requests, code=SEND)
    assert [(entry["code"], entry["response"], entry["text"]) for entry in listed] == [
        (SEND, "SUCCESS", None),
        (SEND, "SUCCESS", "text"),
    ]
    assert listed[0]["body_base64"] == "/w=="
    assert as_json(one.requests, code=SEND, after=listed[0]["id"]) == listed[1:]
    assert as_json(one.requests, code=SEND, newest_first=True) == listed[::-1]


def test_a_follower_gets_what_is_new_and_what_was_answered(one: RocketMQ, topic: str, client: Raw) -> None:
    async def follow() -> list[tuple[int, int | None]]:
        seen = []
        with one.requests.follow(code="PULL_MESSAGE") as follower:
            started.set()
            while not seen or seen[-1][1] is None:
                seen += [(request.id, request.response) for request in await follower.next()]
                arrived.set()
        return seen

    group = one.group("g")
    started, arrived = threading.Event(), threading.Event()
    found: list[tuple[int, int | None]] = []
    reader = threading.Thread(target=lambda: found.extend(one.server.run(follow())))
    reader.start()
    assert started.wait(2)
    client.send(11, topic=topic, **pull_words(0, group=group, most=1, wait_ms=30_000))
    assert arrived.wait(2)
    one.send(topic, "x")
    assert client.receive().code == 0
    reader.join()
    assert [response for _, response in found] == [None, 0]
    assert found[0][0] == found[1][0]


def test_a_thousand_followers_get_everything_and_the_server_serves_on(one: RocketMQ, topic: str) -> None:
    async def follow() -> int:
        with one.requests.follow(code=SEND) as follower:
            ready.release()
            seen: set[int] = set()
            while len(seen) < 20:
                seen |= {request.id for request in await follower.next()}
            return len(seen)

    async def follow_all() -> list[int]:
        return await asyncio.gather(*[follow() for _ in range(1000)])

    ready = threading.Semaphore(0)
    found: list[int] = []
    reader = threading.Thread(target=lambda: found.extend(one.server.run(follow_all())))
    reader.start()
    for _ in range(1000):
        assert ready.acquire(timeout=5)
    for number in range(20):
        one.send(topic, str(number))
    reader.join(10)
    assert found == [20] * 1000


def test_a_follower_that_is_too_slow_knows_what_it_missed() -> None:
    async def follow() -> tuple[int, list[int]]:
        log = RequestLog(entries=10)
        with Requests(log, at_once).follow() as follower:
            filled(log, 25)
            found = await follower.next()
        return follower.missed, [request.id for request in found]

    assert asyncio.run(follow()) == (15, list(range(16, 26)))


def test_what_was_cleared_is_freed_a_part_in_each_turn() -> None:
    async def clear() -> None:
        log, connection, body = RequestLog(), LoggedConnection("peer", "b0"), b"x" * 50
        for number in range(10_000):
            log.add(connection, Command(code=310, opaque=number, body=body), len(body))
        held = [sys.getrefcount(body)]
        log.clear()
        assert (len(log), [*log.entries()]) == (0, [])
        for _ in range(5):
            held.append(sys.getrefcount(body))
            await asyncio.sleep(0)
        assert [before - after for before, after in itertools.pairwise(held)] == [2000] * 5

    asyncio.run(clear())
