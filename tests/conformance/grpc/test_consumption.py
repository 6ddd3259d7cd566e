"""What consumers do with messages, at our endpoint and at the official proxy: scenarios of its LocalGrpcIT, and more.

Routes, transactions and recalls are in the other files of this folder.
"""

import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pocketmq.grpc_endpoint.messages import (
    AckMessageEntry,
    AckMessageRequest,
    ChangeInvisibleDurationRequest,
    ClientType,
    Code,
    Duration,
    FilterExpression,
    FilterType,
    ForwardMessageToDeadLetterQueueRequest,
    MessageQueue,
    QueryAssignmentRequest,
    ReceiveMessageRequest,
    Resource,
    Status,
    ms_of,
    timestamp_of,
)

from conformance.grpc.announcing import announced, consumer, new_id
from conformance.grpc.rows import PX, message, send, topic
from conformance.servers.raw_client import RawClient
from conformance.servers.server import Server
from grpc_client import GrpcClient

ME = "consumption@1@0@a"
OK = Status(code=Code.OK, message="OK")
EXPIRED = f"{PX}receipt handle is expired"
_made: set[tuple[int, str]] = set()


@pytest.fixture
async def queue(side: Server, request: pytest.FixtureRequest) -> str:
    """A topic of one queue for this test, and a group of the same name; returns the name."""
    name: str = request.node.originalname.removeprefix("test_")[:60]
    kind, settings = getattr(request, "param", ("NORMAL", {}))
    if (id(side), name) not in _made:
        _made.add((id(side), name))
        with RawClient(side) as raw:
            reply = raw.call(
                17,
                topic=name,
                defaultTopic="TBW102",
                readQueueNums=1,
                writeQueueNums=1,
                perm=6,
                topicFilterType="SINGLE_TAG",
                topicSysFlag=0,
                order=False,
                attributes=f"+message.type={kind}",
            )
            assert reply.code == 0, reply
            group = {"groupName": name, "consumeEnable": True, "retryMaxTimes": 16, **settings}
            assert raw.call(200, json.dumps(group).encode()).code == 0
    return name


@pytest.fixture
async def member(client: GrpcClient, queue: str) -> AsyncIterator["Member"]:
    async with announced(client, consumer(queue, queue, kind=ClientType.SIMPLE_CONSUMER), ME) as stream:
        del stream
        yield Member(client, queue)


class Member:
    """A consumer of one topic, in the group of its name."""

    def __init__(self, client: GrpcClient, name: str) -> None:
        self.client = client
        self.name = name

    async def send(self, *bodies: str, **system: Any) -> None:
        for body in bodies:
            sent = message(self.name, body.encode(), message_id=new_id(), **system)
            deadline = time.monotonic() + 30
            while (reply := await self.client.ask(send(sent), seconds=20)).status.code != Code.OK:
                assert time.monotonic() < deadline, reply  # the official route is not there at once
                await self.client.ping()

    async def receive(self, **fields: Any) -> tuple[Status, list[Any]]:
        """Status and messages of one receive; keyword arguments are fields of the request."""
        of: dict[str, Any] = {
            "filter_expression": FilterExpression(type=FilterType.TAG, expression="*"),
            "batch_size": 32,
            "invisible_duration": Duration(seconds=30),
            "long_polling_timeout": Duration(seconds=5),
            **fields,
        }
        request = ReceiveMessageRequest(
            group=Resource(name=self.name), message_queue=MessageQueue(topic=topic(self.name), id=-1), **of
        )
        call = self.client.open("ReceiveMessage", request, client_id=ME, timeout="12S")
        replies = []
        while (reply := await call.next(25)) is not None:
            replies.append(reply)
        assert replies[-1].HasField("delivery_timestamp")
        return replies[0].status, [reply.message for reply in replies if reply.HasField("message")]

    async def receive_all(self, count: int, **fields: Any) -> list[Any]:
        """So many messages, of as many receives as it takes."""
        found: list[Any] = []
        deadline = time.monotonic() + 60
        while len(found) < count and time.monotonic() < deadline:
            found += (await self.receive(**fields))[1]
        assert len(found) == count
        return found

    async def ack(self, *messages: Any) -> Any:
        entries = [
            AckMessageEntry(message_id=one.system_properties.message_id, receipt_handle=handle_of(one))
            for one in messages
        ]
        request = AckMessageRequest(group=Resource(name=self.name), topic=topic(self.name), entries=entries)
        return await self.client.ask(request, client_id=ME)

    async def change(self, handle: str, seconds: int, **fields: Any) -> Any:
        request = ChangeInvisibleDurationRequest(
            group=Resource(name=self.name),
            topic=topic(self.name),
            receipt_handle=handle,
            invisible_duration=Duration(seconds=seconds),
            **fields,
        )
        return await self.client.ask(request, client_id=ME)

    async def give_up(self, one: Any) -> Any:
        request = ForwardMessageToDeadLetterQueueRequest(
            group=Resource(name=self.name),
            topic=topic(self.name),
            receipt_handle=handle_of(one),
            message_id=one.system_properties.message_id,
        )
        return await self.client.ask(request, client_id=ME)


def handle_of(one: Any) -> str:
    handle: str = one.system_properties.receipt_handle
    return handle


def bodies_of(messages: list[Any]) -> list[str]:
    return [one.body.decode() for one in messages]


def attempts_of(messages: list[Any]) -> list[int]:
    return [one.system_properties.delivery_attempt for one in messages]


FIFO = ("FIFO", {"consumeMessageOrderly": True})


@pytest.mark.parametrize("queue", [FIFO], indirect=True)
async def test_order_and_attempts(member: Member) -> None:
    await member.send("a", "b", "c", message_group="one")
    first = await member.receive_all(2, batch_size=2, attempt_id="x", invisible_duration=Duration(seconds=10))
    assert (bodies_of(first), attempts_of(first)) == (["a", "b"], [1, 1])
    assert handle_of(first[0]).split(" ")[3] == "999"
    again = await member.receive_all(2, batch_size=2, attempt_id="x", invisible_duration=Duration(seconds=10))
    assert (bodies_of(again), attempts_of(again)) == (["a", "b"], [1, 1])
    assert (await member.receive(attempt_id="y"))[0].code == Code.MESSAGE_NOT_FOUND
    late = await member.receive_all(2, batch_size=2, attempt_id="z")  # after their time was over
    assert (bodies_of(late), attempts_of(late)) == (["a", "b"], [2, 2])
    assert (await member.ack(*late)).status == OK
    rest = await member.receive_all(1, attempt_id="w")
    assert (bodies_of(rest), attempts_of(rest)) == (["c"], [1])
    assert (await member.ack(*rest)).status == OK


@pytest.mark.parametrize("queue", [FIFO], indirect=True)
async def test_assignment_of_a_group_in_order(client: GrpcClient, queue: str) -> None:
    request = QueryAssignmentRequest(topic=topic("FifoT"), group=Resource(name=queue))
    reply = await client.ask(request, seconds=20)
    assert [one.message_queue.id for one in reply.assignments] == list(range(8))
    other = await client.ask(QueryAssignmentRequest(topic=topic("FifoT"), group=Resource(name="g")))
    assert [one.message_queue.id for one in other.assignments] == [-1]


async def test_nack_is_a_new_record_of_the_retry_topic(member: Member) -> None:
    await member.send("a")
    [first] = await member.receive_all(1)
    changed = await member.change(handle_of(first), 1)
    assert changed.status == OK
    fields = changed.receipt_handle.split(" ")
    assert (fields[2], fields[6:8]) == ("1000", handle_of(first).split(" ")[6:8])
    assert len(fields) == 10  # the official handle loses its place, and so does that of a strict endpoint
    [again] = await member.receive_all(1)
    assert (attempts_of([again]), handle_of(again).split(" ")[4]) == ([2], "1")
    assert (await member.ack(again)).status == OK


async def test_suspended_message_does_not_count(member: Member) -> None:
    await member.send("a")
    [first] = await member.receive_all(1)
    assert (await member.change(handle_of(first), 1, suspend=True)).status == OK
    [again] = await member.receive_all(1)
    assert attempts_of([again]) == [1]
    assert (await member.ack(again)).status == OK


async def test_expired_handles(member: Member) -> None:
    await member.send("a")
    [first] = await member.receive_all(1, invisible_duration=Duration(seconds=10))
    [again] = await member.receive_all(1)
    assert attempts_of([again]) == [2]
    acked = await member.ack(first)
    assert acked.status == Status(code=Code.INVALID_RECEIPT_HANDLE, message="INVALID_RECEIPT_HANDLE")
    assert [one.status.message for one in acked.entries] == [EXPIRED]
    changed = await member.change(handle_of(first), 30)
    assert changed.status == Status(code=Code.INVALID_RECEIPT_HANDLE, message=EXPIRED)
    assert (await member.ack(again)).status == OK


async def test_given_up(member: Member, side: Server) -> None:
    await member.send("a", "b")
    first, second = await member.receive_all(2, invisible_duration=Duration(seconds=10))
    assert (await member.give_up(second)).status == Status(code=Code.OK, message="0")
    assert (await member.ack(first)).status == OK
    with RawClient(side) as raw:
        assert raw.max_offset(f"%DLQ%{member.name}", 0) == 1
    assert (await member.receive(long_polling_timeout=Duration(seconds=10)))[0].code == Code.MESSAGE_NOT_FOUND
    second_field = handle_of(second).split(" ")
    without = with_handle(second, " ".join(second_field[:8]))
    assert (await member.give_up(without)).status == Status(
        code=Code.INVALID_RECEIPT_HANDLE, message=f"{PX}commit log offset is empty"
    )


@pytest.mark.parametrize("queue", [("NORMAL", {"retryMaxTimes": 0})], indirect=True)
async def test_last_attempt(member: Member, side: Server) -> None:
    await member.send("a")
    await member.receive_all(1, invisible_duration=Duration(seconds=10))
    status, found = await member.receive(long_polling_timeout=Duration(seconds=10))
    for _ in range(4):
        if status.message != "no new message":
            break
        status, found = await member.receive(long_polling_timeout=Duration(seconds=10))
    assert (status, found) == (Status(code=Code.MESSAGE_NOT_FOUND, message="no match message"), [])
    with RawClient(side) as raw:
        assert raw.max_offset(f"%DLQ%{member.name}", 0) == 1


async def test_filters(member: Member) -> None:
    await member.send("a", tag="A")
    await member.send("b", tag="B")
    tags = FilterExpression(type=FilterType.TAG, expression="B || C")
    [found] = await member.receive_all(1, filter_expression=tags)
    assert (found.body, found.system_properties.tag) == (b"b", "B")
    assert (await member.ack(found)).status == OK


@pytest.mark.parametrize("queue", [("DELAY", {})], indirect=True)
async def test_delay(member: Member) -> None:
    due_ms = int(time.time() * 1000) + 4000
    await member.send("later", delivery_timestamp=timestamp_of(due_ms))
    [found] = await member.receive_all(1)
    assert time.time() * 1000 >= due_ms - 1000
    assert ms_of(found.system_properties.delivery_timestamp) == due_ms
    assert (await member.ack(found)).status == OK


async def test_largest_message(member: Member) -> None:
    body = "x" * 4_194_304
    await member.send(body)
    [found] = await member.receive_all(1)
    assert found.body == body.encode()
    assert (await member.ack(found)).status == OK


async def test_messages_of_a_batch_of_none(member: Member) -> None:
    await member.send("a")
    status, found = await member.receive(batch_size=0)
    assert (status.code, found) == (Code.MESSAGE_NOT_FOUND, [])
    assert (await member.ack(*await member.receive_all(1))).status == OK


def with_handle(one: Any, handle: str) -> Any:
    """The same message with another handle."""
    changed = type(one)()
    changed.CopyFrom(one)
    changed.system_properties.receipt_handle = handle
    return changed
