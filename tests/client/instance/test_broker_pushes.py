"""Requests of brokers to a client: resets (220), offsets (221), replies (326), and unknown codes."""

import asyncio
from typing import Any

import pytest
from pocketmq.broker.node import Node
from pocketmq.client import MessageExt, MessageQueue, Producer, PushConsumer, Requester
from pocketmq.protocol.bodies.client_state import GetConsumerStatusBody
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.protocol.requests.offset import InvokeBrokerToGetConsumerStatus, InvokeBrokerToResetOffset
from pocketmq.protocol.requests.to_client import PushReplyMessageToClient
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.schema import to_fields

from client_waits import Seen, consuming, send
from waiting import until


async def test_a_member_follows_the_brokers_reset_and_reports_its_offsets(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that resets offsets by pushing the reset to the members."""
    node.broker.config.use_server_side_reset_offset = False
    monkeypatch.setattr("pocketmq.client.push.push_queues.RESET_WAIT_SECONDS", 0.05)
    address = node.namesrv_address
    await send(address, "T", 8)
    seen = Seen()
    async with consuming(address, seen) as consumer:
        await until(lambda: len(seen.messages) == 8)
        instance = consumer._running
        broker = instance.routes.master("broker-a") or ""
        question = InvokeBrokerToGetConsumerStatus(topic="T", group="g")
        body = await instance.connections.call_for_body(broker, question)
        table = GetConsumerStatusBody.decode(body).consumer_table[consumer.client_id]
        assert sorted(table.values()) == [2, 2, 2, 2]
        await consumer._queues.persist_offsets()
        reset = InvokeBrokerToResetOffset(topic="T", group="g", timestamp=0, is_force=True)
        await instance.connections.call_for_body(broker, reset)
        await until(lambda: len(seen.messages) == 16)
        assert sorted(seen.bodies[8:]) == sorted(seen.bodies[:8])


class Answers:
    """A connection that keeps the client's answers."""

    address = "broker:1"

    def __init__(self) -> None:
        self.answers: list[tuple[int, str | None]] = []

    def answer(self, asked: Command, *, code: int = 0, remark: str | None = None, body: Any = None) -> None:
        self.answers.append((code, remark))


def pushed_reply(correlation_id: str, body: bytes) -> Command:
    """326 as a broker sends it."""
    request = PushReplyMessageToClient(
        producer_group="answers",
        topic="DefaultCluster_REPLY_TOPIC",
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=0,
        sys_flag=0,
        born_timestamp=1,
        flag=0,
        properties=encode_properties_text({names.CORRELATION_ID: correlation_id, names.MSG_TYPE: "reply"}),
        born_host="127.0.0.1:1",
        store_host="127.0.0.1:2",
        store_timestamp=2,
    )
    return Command(request.code, 7, 0, None, to_fields(request), body)


async def test_a_pushed_reply_completes_its_request_and_unknown_ones_are_answered_too(
    namesrv_addr: str,
) -> None:
    async with Requester("askers", namesrv_addr=namesrv_addr) as requester:
        asking = asyncio.create_task(requester.request("Questions", b"?", timeout_ms=30_000))
        await until(lambda: requester._waiting)
        pushes = requester._running.connections._on_push
        assert pushes is not None
        connection = Answers()
        pushes(connection, pushed_reply("unknown", b"lost"))  # type: ignore[arg-type]
        pushes(connection, pushed_reply(next(iter(requester._waiting)), b"42"))  # type: ignore[arg-type]
        reply = await asking
    assert (reply.body, reply.topic) == (b"42", "DefaultCluster_REPLY_TOPIC")
    assert reply.properties[names.ARRIVE_TIME].isdigit()
    assert connection.answers == [(0, None), (0, None)]


async def test_a_request_goes_to_the_named_queue(namesrv_addr: str) -> None:
    await send(namesrv_addr, "Questions", 1)
    seen = Seen()
    queue = MessageQueue("Questions", "broker-a", 3)
    ways: list[dict[str, Any]] = [
        {"queue": queue},
        {"queue_id": 3},
        {"selector": lambda queues, _, arg: queues[arg], "arg": 3, "properties": {"colour": "red"}},
    ]
    async with (
        PushConsumer("g", seen, namesrv_addr=namesrv_addr, subscription={"Questions": "*"}) as consumer,
        Requester("askers", namesrv_addr=namesrv_addr) as requester,
    ):
        await consumer.wait_assigned()
        asked = [
            asyncio.create_task(requester.request("Questions", b"?", keys=["a", "b"], **way)) for way in ways
        ]
        await until(lambda: seen.bodies.count(b"?") == 3)
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
    found = [message for message in seen.messages if message.body == b"?"]
    assert {message.queue_id for message in found} == {3}
    assert {message.keys for message in found} == {"a b"}
    assert [message.properties.get("colour") for message in found].count("red") == 1


async def test_requests_a_client_cannot_answer_get_the_official_codes(producer: Producer) -> None:
    pushes = producer._running.connections._on_push
    assert pushes is not None
    connection = Answers()
    for asked in (
        Command(9999, 1),
        Command(307, 2, fields={"consumerGroup": "g", "clientId": "c"}),
        Command(309, 3, fields={"consumerGroup": "g"}),
        Command(220, 4, fields={}),
        Command(326, 5, fields={"topic": "T"}),
        Command(39, 6, fields={}, body=b"no record"),
        Command(221, 7, fields={"topic": "T", "group": "g"}),
    ):
        pushes(connection, asked)  # type: ignore[arg-type]
    assert [code for code, _ in connection.answers] == [3, 1, 1, 1, 1, 1, 0]
    assert connection.answers[0][1] == " request type 9999 not supported"
    assert connection.answers[1][1] == "The Consumer Group <g> not exist in this consumer"


async def test_a_message_too_long_in_its_listener_is_sent_back(
    namesrv_addr: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pocketmq.client.push.push_consumer.MINUTE_SECONDS", 0.001)
    await send(namesrv_addr, "T", 1)
    started, release, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
    looks: list[int] = []

    async def listener(message: MessageExt) -> None:
        started.set()
        await release.wait()
        ended.set()
        raise ValueError("late")

    async with consuming(namesrv_addr, listener) as consumer:
        sent_back: list[int] = []

        async def send_back(message: MessageExt, delay_level: int) -> bool:
            sent_back.append(delay_level)
            return True

        monkeypatch.setattr(consumer._queues.delivery.send_back, "send_back", send_back)
        await started.wait()
        states = list(consumer._queues.table.values())
        for state in states:
            now_ms = state._now_ms
            monkeypatch.setattr(state, "_now_ms", lambda now_ms=now_ms: looks.append(1) or now_ms())
        await until(lambda: len(looks) > 4)  # rounds of the cleaning: the message is not old enough
        assert sent_back == []
        for state in states:
            monkeypatch.setattr(state, "_now_ms", lambda: 10**15)
        await until(lambda: sent_back)
        assert sum(state.count for state in states) == 0
        release.set()
        await ended.wait()  # the listener's own failure comes too late to send it a second time
    assert sent_back == [3]
