"""Each effect, with the Python client or a raw connection: what the client sees, and what the broker did."""

import asyncio
import threading

import pytest
from pocketmq.broker.errors import PeerError, Refusal
from pocketmq.client import Producer, SendFailed
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import encode_frame
from pocketmq.testing import DROP, PASS, EmbeddedServer, LoggedRequest, Refused, Reply, RocketMQ

from frames_client import Raw, raw
from testing_acts import SEND as SEND_FIELDS
from waiting import until

SEND = "SEND_MESSAGE_V2"
MAX_OFFSET = "GET_MAX_OFFSET"


def test_a_refused_send_is_not_stored_and_the_next_one_is(one: RocketMQ, orders: str) -> None:
    rule = one.faults.refuse(code=SEND, topic=orders, response="SYSTEM_BUSY", remark="come later")
    with pytest.raises(Refusal, match="come later") as refused:
        one.send(orders, "first")
    assert refused.value.code == 2
    one.send(orders, "second")
    assert [message.text for message in one.messages(orders)] == ["second"]
    assert [(hit.topic, hit.response, hit.remark) for hit in rule.hits] == [(orders, 2, "come later")]


@pytest.mark.parametrize("execute", [False, True])
async def test_a_silenced_send_times_out_and_is_stored_only_if_executed(one: RocketMQ, execute: bool) -> None:
    orders = one.topic("orders")
    async with Producer("shop", namesrv_addr=one.namesrv_addr, retry_times_when_send_failed=0) as producer:
        await producer.send(one.topic("others"), b"the connection is open")
        await producer.queues(orders)
        rule = one.faults.silence(code=SEND, topic=orders, execute=execute)
        with pytest.raises(SendFailed):
            await producer.send(orders, b"order 17", timeout_ms=200)
    await until(lambda: rule.hits)
    assert len(one.messages(orders)) == int(execute)
    [request] = one.requests.find(code=SEND, topic=orders)
    assert request.response is None


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("execute", [False, True])
def test_a_disconnected_request_ends_the_connection(
    one: RocketMQ, orders: str, client: Raw, execute: bool, reset: bool
) -> None:
    one.faults.disconnect(code=SEND, topic=orders, execute=execute, reset=reset)
    client.send(310, b=orders, i="", body=b"x", **SEND_FIELDS)
    with pytest.raises(ConnectionResetError if reset else EOFError):
        client.receive()
    assert len(one.messages(orders)) == int(execute)


def test_what_was_sent_behind_a_disconnected_request_is_not_handled(
    one: RocketMQ, orders: str, client: Raw
) -> None:
    one.faults.disconnect(code=MAX_OFFSET)
    frame = encode_frame(Command(30, 1, fields={"topic": orders, "queueId": "0"}))
    client.socket.sendall(frame * 3)
    with pytest.raises(EOFError):
        client.receive()
    assert one.requests.count(code=MAX_OFFSET, response="SUCCESS") == 0


def test_an_answer_cut_within_its_body_arrives_by_half(one: RocketMQ) -> None:
    orders = one.topic("orders", queues=1)
    one.send(orders, "x" * 1000)
    rule = one.faults.disconnect(code="GET_ROUTEINFO_BY_TOPIC", within_body=True)
    with raw(one.namesrv_addr) as client:
        client.send(105, topic=orders)
        received = b""
        while data := client.socket.recv(65536):
            received += data
    length = int.from_bytes(received[:4], "big") + 4
    header = int.from_bytes(received[5:8], "big") + 8
    assert len(received) == header + (length - header) // 2
    assert rule.hits[0].topic == orders


async def test_a_delayed_answer_does_not_hold_up_the_others(one: RocketMQ, orders: str, client: Raw) -> None:
    one.faults.delay(code=MAX_OFFSET, queue_id=0, seconds=0.1)
    asked = [Command(30, 1 + queue, fields={"topic": orders, "queueId": str(queue)}) for queue in (0, 1)]
    client.socket.sendall(b"".join(map(encode_frame, asked)))
    assert client.receive().opaque == 2
    assert client.receive().opaque == 1


def test_a_delay_is_by_the_servers_clock() -> None:
    with EmbeddedServer(emulate="5", virtual_time=True) as server, raw(server.broker_addr) as client:
        one = RocketMQ(server)
        orders = one.topic("orders")
        one.faults.delay(code=MAX_OFFSET, seconds=3600)
        client.send(30, topic=orders, queueId=0)
        assert client.is_silent()
        one.clock.advance("59m")
        assert client.is_silent()
        one.clock.advance("1m")
        assert client.receive().code == 0


def test_jitter_is_plus_or_minus() -> None:
    with EmbeddedServer(emulate="5", virtual_time=True) as server, raw(server.broker_addr) as client:
        one = RocketMQ(server)
        orders = one.topic("orders")
        one.faults.delay(code=MAX_OFFSET, seconds=10, jitter=5, times=None)
        asked = [Command(30, number, fields={"topic": orders, "queueId": "0"}) for number in range(100)]
        client.socket.sendall(b"".join(map(encode_frame, asked)))
        one.requests.wait_for(code=MAX_OFFSET, count=100)
        answered = []
        for seconds in (4, 6, 6):
            one.clock.advance(seconds)
            answered.append(one.requests.count(code=MAX_OFFSET, response="SUCCESS"))
        assert answered[0] == 0
        assert 0 < answered[1] < answered[2] == 100


def test_fields_body_and_opaque_of_an_answer_are_altered(one: RocketMQ, orders: str, client: Raw) -> None:
    one.faults.alter(code=MAX_OFFSET, fields={"offset": 7, "more": True}, body="text", opaque=99)
    reply = client.ask(30, topic=orders, queueId=0)
    assert (reply.opaque, reply.fields, bytes(reply.body or b"")) == (
        99,
        {"offset": "7", "more": "true"},
        b"text",
    )
    [request] = one.requests.find(code=MAX_OFFSET)
    assert request.reply_fields["offset"] == "7", "the log has what the client got"


def test_a_function_may_alter_the_reply(one: RocketMQ, orders: str, client: Raw) -> None:

    def twice(reply: Reply) -> Reply:
        reply.code, reply.remark = "SYSTEM_ERROR", f"it was {reply.fields['offset']}"
        return reply

    one.faults.alter(twice, code=MAX_OFFSET)
    reply = client.ask(30, topic=orders, queueId=0)
    assert (reply.code, reply.remark) == (1, "it was 0")


def test_a_duplicate_answer_arrives_twice(one: RocketMQ, orders: str, client: Raw) -> None:
    one.faults.duplicate(code=MAX_OFFSET)
    client.send(30, 5, topic=orders, queueId=0)
    assert [client.receive().opaque, client.receive().opaque] == [5, 5]
    assert client.is_silent()
    assert one.requests.count(code=MAX_OFFSET) == 1


# -- control


def test_a_plain_function_decides(one: RocketMQ, orders: str, client: Raw) -> None:
    seen: list[LoggedRequest] = []

    def decide(request: LoggedRequest) -> object:
        seen.append(request)
        outcomes = [PASS, Reply(fields={"offset": 5}), DROP, Reply("QUERY_NOT_FOUND", remark="none")]
        if len(seen) > len(outcomes):
            raise Refused("NO_PERMISSION", "not you")
        return outcomes[len(seen) - 1]

    one.faults.control(MAX_OFFSET, decide, times=None)  # type: ignore[arg-type]
    assert client.ask(30, topic=orders, queueId=0).fields == {"offset": "0"}
    assert client.ask(30, topic=orders, queueId=0).fields == {"offset": "5"}
    client.send(30, topic=orders, queueId=0)
    assert client.is_silent()
    assert client.ask(30, topic=orders, queueId=0).remark == "none"
    reply = client.ask(30, topic=orders, queueId=0)
    assert (reply.code, reply.remark) == (16, "not you")
    assert seen[0].fields == {"topic": orders, "queueId": "0"}


@pytest.mark.parametrize("outcome", ["PASS", "Reply", "Refused", "DROP"])
def test_a_coroutine_function_decides_later(one: RocketMQ, client: Raw, outcome: str) -> None:
    orders, decided = one.topic("orders"), threading.Event()

    async def decide(request: LoggedRequest) -> object:
        await asyncio.sleep(0.01)
        decided.set()
        if outcome == "Refused":
            raise Refused(16, "not you")
        return {"PASS": PASS, "DROP": DROP, "Reply": Reply(fields={"offset": 5})}[outcome]

    one.faults.control(30, decide)  # type: ignore[arg-type]
    client.send(30, topic=orders, queueId=0)
    if outcome == "DROP":
        assert decided.wait(30)
        assert client.is_silent()
    else:
        reply = client.receive()
        expected = {"PASS": (0, "0"), "Reply": (0, "5"), "Refused": (16, None)}[outcome]
        assert (reply.code, (reply.fields or {}).get("offset")) == expected


def test_the_body_reaches_the_function(one: RocketMQ, orders: str) -> None:
    bodies: list[bytes] = []

    def look(request: LoggedRequest) -> object:
        bodies.append(request.body)
        return PASS

    one.faults.control(SEND, look)  # type: ignore[arg-type]
    one.send(orders, "order 17")
    assert bodies == [b"order 17"]


def test_a_function_that_fails_is_answered_and_fails_the_test(
    one: RocketMQ, orders: str, client: Raw
) -> None:
    one.faults.control(MAX_OFFSET, lambda request: 1 / 0)  # type: ignore[arg-type, return-value]
    one.faults.control(MAX_OFFSET, lambda request: "a text")  # type: ignore[arg-type, return-value]
    assert client.ask(30, topic=orders, queueId=0).remark == "ZeroDivisionError: division by zero"
    assert "must return a Reply, PASS or DROP" in (client.ask(30, topic=orders, queueId=0).remark or "")
    with pytest.raises(AssertionError, match="the function of control raised ZeroDivisionError"):
        one.faults.check()


# -- what can be hit


def test_one_way_requests_are_hit_by_what_needs_no_answer(one: RocketMQ, topic: str, client: Raw) -> None:
    late = one.faults.delay(code=SEND, seconds=0.0, times=None)
    refused = one.faults.refuse(code=SEND, oneway=True)
    client.send(310, flag=2, b=topic, body=b"lost", **SEND_FIELDS)
    client.send(310, flag=2, b=topic, body=b"kept", **SEND_FIELDS)
    client.ask(30, topic=topic, queueId=0)
    assert [message.text for message in one.messages(topic)] == ["kept"]
    assert [hit.oneway for hit in refused.hits] == [True]
    assert late.hits == []


def test_the_brokers_own_registration_is_neither_hit_nor_logged(one: RocketMQ) -> None:
    rule = one.faults.silence(times=None)
    one.topic("orders")
    assert rule.hits == []
    assert one.requests.find(code="REGISTER_BROKER") == []


def test_a_notification_to_clients_can_be_lost(one: RocketMQ, client: Raw) -> None:
    group = one.group("g")
    rule = one.faults.silence(code="NOTIFY_CONSUMER_IDS_CHANGED", group=group)
    body = (
        '{"clientID": "c1", "consumerDataSet": [{"groupName": "%s", "consumeType": "CONSUME_PASSIVELY", '
        '"messageModel": "CLUSTERING", "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET", "subscriptionDataSet": []}]}'
    )
    client.send(34, body=(body % group).encode())
    assert client.receive().opaque == 1
    assert client.is_silent()
    [hit] = rule.hits
    assert (hit.to_client, hit.client_id) == (True, "c1")


def test_a_server_without_an_answer_is_a_peer_error(one: RocketMQ, orders: str) -> None:
    one.faults.disconnect(code=SEND)
    with pytest.raises(PeerError):
        one.send(orders, "x")


def test_faults_and_log_outlive_a_restart() -> None:
    server = EmbeddedServer(emulate="5")
    one = RocketMQ(server)
    one.faults.refuse(code=SEND, times=2)
    with server:
        orders = one.topic("orders")
        with pytest.raises(Refusal):
            one.send(orders, "x")
    with server:
        orders = one.topic("orders")
        with pytest.raises(Refusal):
            one.send(orders, "x")
        assert one.requests.count(code=SEND) == 2
    one.faults.check()
    one.faults.clear()
    assert one.faults.rules == []
