"""What is stored, what consumers do with it, and what a server asks its clients. Each scenario has a topic of one queue
and a group of the same name."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from pocketmq.grpc_endpoint.messages import (
    ClientType,
    Code,
    Duration,
    Encoding,
    EndTransactionRequest,
    MessageType,
    QueryAssignmentRequest,
    RecallMessageRequest,
    ReceiveMessageResponse,
    Resource,
    Status,
    TelemetryCommand,
    TransactionResolution,
    TransactionSource,
    VerifyMessageResult,
    ms_of,
    timestamp_of,
)

from conformance.examples.stored import stored
from conformance.grpc.rows import expression, message, receive, send, topic
from conformance.grpc.talk import Talk, shown
from conformance.servers.raw_client import RawClient
from conformance.servers.server import Server
from grpc_calls import ack, change, consumer, give_up, producer
from grpc_client import changed

ME = "consumption@1@0@a"
COMMIT = TransactionResolution.COMMIT
_, SOURCE_CLIENT, SOURCE_SERVER_CHECK = TransactionSource
CONF = {"recallMessageEnable": True, "transactionTimeOut": 6000, "transactionCheckInterval": 5000}
"""The official broker needs both times above 3 s, or asks about ended transactions too."""
S_10 = Duration(seconds=10)
Scenario = Callable[["Member"], Awaitable[None]]
SCENARIOS: dict[str, tuple[Scenario, str, dict[str, object]]] = {}
"""By name: the type of the topic, and settings of the group."""


def scenario(kind: str = "NORMAL", **group: object) -> Callable[[Scenario], Scenario]:
    def register(function: Scenario) -> Scenario:
        SCENARIOS[function.__name__] = function, kind, group
        return function

    return register


def prepare(server: Server) -> None:
    with RawClient(server) as raw:
        for name, (_, kind, settings) in SCENARIOS.items():
            queues = {"message_groups": 8, "priorities": 4}.get(name, 1)
            raw.update_topic(name, queues, attributes=f"+message.type={kind}")
            group = {"groupName": name, "consumeEnable": True, "retryMaxTimes": 16, **settings}
            assert raw.call(200, json.dumps(group).encode()).code == 0


async def consume(talk: Talk) -> None:
    for name, (function, _, _) in SCENARIOS.items():
        talk.say(f"-- {name}")
        await function(Member(talk, name))


class Member:
    """A consumer of one topic, in the group of its name, and a producer."""

    def __init__(self, talk: Talk, name: str) -> None:
        self.talk = talk
        self.name = name

    @asynccontextmanager
    async def announced(self) -> AsyncIterator[None]:
        async with self.talk.announced(consumer(self.name, [self.name], ClientType.SIMPLE_CONSUMER), ME):
            yield

    async def send(self, *bodies: str, **system: Any) -> Any:
        """One message of each; the last reply."""
        for body in bodies:
            request = send(message(self.name, body.encode(), message_id=self.talk.new_id(), **system))
            (reply,) = await self.talk.replies(request)
            assert reply.status.code == Code.OK, reply
        return reply

    async def receive(self, name: str | None = None, **fields: Any) -> list[Any]:
        """The messages of one receive; its replies are shown if it has a name."""
        of = {"long_polling_timeout": Duration(seconds=5), **fields}
        request = receive(self.name, self.name, **of)
        replies = await self.talk.replies(request, client_id=ME, timeout="25S")
        if name is not None:
            self.talk.say(name, *map(shown, replies))
        return [reply.message for reply in replies if reply.HasField("message")]

    async def receive_all(self, name: str, count: int, **fields: Any) -> list[Any]:
        """So many messages, of as many receives as it takes: the messages are shown."""
        found: list[Any] = []
        for _ in range(20):
            found += await self.receive(**fields)
            if len(found) >= count:
                break
        self.talk.say(name, *(shown(ReceiveMessageResponse(message=one)) for one in sorted(found, key=place)))
        assert len(found) == count
        return found

    async def ack(self, name: str, *messages: Any, more: tuple[tuple[str, str], ...] = ()) -> None:
        entries = [(one.system_properties.message_id, handle_of(one)) for one in messages]
        await self._say(name, ack(self.name, self.name, [*entries, *more]))

    async def change(self, name: str, one: Any, seconds: int, **fields: Any) -> None:
        await self._say(name, change(self.name, self.name, handle_of(one), seconds * 1000, **fields))

    async def give_up(self, name: str, one: Any) -> None:
        request = give_up(self.name, self.name, one.system_properties.message_id, handle_of(one))
        await self._say(name, request)

    async def _say(self, name: str, request: Any) -> None:
        """Without a digest: handles have times."""
        self.talk.say(name, *map(shown, await self.talk.replies(request, client_id=ME)))

    def dead_letters(self) -> None:
        with RawClient(self.talk.server) as raw:
            self.talk.say("dead letters", str(raw.max_offset(f"%DLQ%{self.name}", 0)))


def place(one: Any) -> int:
    offset: int = one.system_properties.queue_offset
    return offset


def handle_of(one: Any) -> str:
    handle: str = one.system_properties.receipt_handle
    return handle


def stored_texts(member: Member, offset: int, queue_id: int = 0, count: int = 1) -> list[str]:
    """The properties of stored messages, readable."""
    with RawClient(member.talk.server) as raw:
        pulled = [raw.pull("reader", member.name, queue_id, offset + number) for number in range(count)]
    found = [next(stored(reply.body)) for reply in pulled]
    return [str((record.queue, record.offset, record.properties)) for record in found]


# -- sends


@scenario()
async def plain(member: Member) -> None:
    reply = await member.send("a")
    member.talk.say("sent", shown(reply), *stored_texts(member, reply.entries[0].offset))


@scenario()
async def full(member: Member) -> None:
    sent = message(
        member.name,
        user={"u": "1", "Ü": "ö", "a": "b"},
        message_id=member.talk.new_id(),
        tag="A",
        keys=["k1", "k2"],
        trace_context="tc",
        body_encoding=Encoding.GZIP,
        delivery_attempt=3,
    )
    (reply,) = await member.talk.replies(send(sent))
    member.talk.say("sent", shown(reply), *stored_texts(member, reply.entries[0].offset))
    async with member.announced():
        await member.ack("ack", *await member.receive_all("received", 1))


@scenario()
async def batch(member: Member) -> None:
    """One receipt for all."""
    messages = [message(member.name, message_id=member.talk.new_id()) for _ in range(3)]
    (reply,) = await member.talk.replies(send(*messages))
    member.talk.say("sent", shown(reply), *stored_texts(member, reply.entries[0].offset, count=3))


@scenario("FIFO")
async def message_groups(member: Member) -> None:
    for group, queue_id in (("mg", 2), ("b", 5), ("order-1", 3), ("组", 2), ("x0123456789", 2)):
        reply = await member.send("a", message_group=group)
        member.talk.say(group, *stored_texts(member, reply.entries[0].offset, queue_id))


@scenario("PRIORITY")
async def priorities(member: Member) -> None:
    for priority in (0, 2, 9):
        reply = await member.send("a", priority=priority)
        member.talk.say(str(priority), *stored_texts(member, reply.entries[0].offset, min(priority, 3)))


@scenario("DELAY")
async def recall_handles(member: Member) -> None:
    for name, seconds in (("later", 3600), ("past", -1)):
        due = timestamp_of(member.talk.now_ms() + seconds * 1000)
        member.talk.say(name, shown(await member.send("a", delivery_timestamp=due)))


@scenario("TRANSACTION")
async def orphan(member: Member) -> None:
    """A transaction without an end: its producer is asked, and commits."""
    talk = member.talk
    async with talk.announced(producer(member.name), ME) as stream:
        born = timestamp_of(talk.now_ms())
        await member.send("half", message_type=MessageType.TRANSACTION, born_timestamp=born, tag="T")
        question = await talk.next(stream)
        talk.say("asked", shown(question))
        transaction_id = question.recover_orphaned_transaction_command.transaction_id
        await talk.ask("commit", _end(member, transaction_id, COMMIT, SOURCE_SERVER_CHECK), client_id=ME)
    async with member.announced():
        await member.ack("ack", *await member.receive_all("received", 1))


@scenario("TRANSACTION")
async def transactions(member: Member) -> None:
    for resolution in TransactionResolution:
        born = timestamp_of(member.talk.now_ms())
        reply = await member.send("a", message_type=MessageType.TRANSACTION, born_timestamp=born)
        message_id = reply.entries[0].transaction_id
        member.talk.say("half", message_id)
        for name in (resolution.name, "again"):
            await member.talk.ask(name, _end(member, message_id, resolution, SOURCE_CLIENT))


def _end(
    member: Member, transaction_id: str, resolution: TransactionResolution, source: TransactionSource
) -> EndTransactionRequest:
    return EndTransactionRequest(
        topic=topic(member.name),
        message_id=transaction_id,
        transaction_id=transaction_id,
        resolution=resolution,
        source=source,
    )


@scenario("DELAY")
async def recalled(member: Member) -> None:
    reply = await member.send("a", delivery_timestamp=timestamp_of(member.talk.now_ms() + 15_000))
    request = RecallMessageRequest(topic=topic(member.name), recall_handle=reply.entries[0].recall_handle)
    member.talk.say("recalled", *map(shown, await member.talk.replies(request)))
    async with member.announced():
        await member.talk.pass_time(17)
        await member.receive("nothing arrives")


# -- consumers


@scenario("FIFO", consumeMessageOrderly=True)
async def order_and_attempts(member: Member) -> None:
    request = QueryAssignmentRequest(topic=topic("message_groups"), group=Resource(name=member.name))
    await member.talk.ask("assignment of a group in order", request)
    await member.send("a", "b", "c", message_group="one")
    async with member.announced():
        both: dict[str, Any] = {"batch_size": 2, "invisible_duration": S_10}
        await member.receive_all("first", 2, attempt_id="x", **both)
        await member.receive_all("the same attempt", 2, attempt_id="x", **both)
        await member.receive("another attempt", attempt_id="y")
        late = await member.receive_all("after their time", 2, batch_size=2, attempt_id="z")
        await member.ack("ack", *late)
        await member.ack("ack of the last", *await member.receive_all("rest", 1, attempt_id="w"))


@scenario()
async def nack(member: Member) -> None:
    await member.send("a")
    async with member.announced():
        [first] = await member.receive_all("first", 1)
        await member.change("nack", first, 1)
        await member.ack("ack", *await member.receive_all("again", 1))


@scenario()
async def suspended(member: Member) -> None:
    await member.send("a")
    async with member.announced():
        [first] = await member.receive_all("first", 1)
        await member.change("suspended", first, 1, suspend=True)
        await member.ack("ack", *await member.receive_all("again", 1))


@scenario()
async def expired(member: Member) -> None:
    await member.send("a")
    async with member.announced():
        [first] = await member.receive_all("first", 1, invisible_duration=S_10)
        [again] = await member.receive_all("again", 1)
        await member.ack("late ack", first)
        await member.change("late change", first, 30)
        await member.ack("ack, and one that cannot be read", again, more=(("", "H"),))
        await member.ack("ack twice", again)


@scenario()
async def given_up(member: Member) -> None:
    await member.send("a", "b")
    async with member.announced():
        first, second = await member.receive_all("received", 2, invisible_duration=S_10)
        await member.give_up("dead letter", second)
        await member.ack("ack", first)
        member.dead_letters()
        await member.receive("nothing is left", long_polling_timeout=S_10)
        fields = handle_of(second).split(" ")
        without = changed(second.system_properties, receipt_handle=" ".join(fields[:8]))
        await member.give_up("without its place", changed(second, system_properties=without))


@scenario(retryMaxTimes=0)
async def last_attempt(member: Member) -> None:
    await member.send("a")
    async with member.announced():
        await member.receive_all("first", 1, invisible_duration=S_10)
        await member.talk.pass_time(14)
        await member.receive("none", long_polling_timeout=S_10)
        member.dead_letters()


@scenario()
async def filters(member: Member) -> None:
    await member.send("a", tag="A")
    await member.send("b", tag="B")
    async with member.announced():
        found = await member.receive_all("B or C", 1, filter_expression=expression("B || C"))
        await member.ack("ack", *found)


@scenario("DELAY")
async def delay(member: Member) -> None:
    due_ms = member.talk.now_ms() + 4000
    await member.send("later", delivery_timestamp=timestamp_of(due_ms))
    async with member.announced():
        [found] = await member.receive_all("received", 1)
        assert member.talk.now_ms() >= due_ms - 1000
        assert ms_of(found.system_properties.delivery_timestamp) == due_ms
        await member.ack("ack", found)


@scenario()
async def largest(member: Member) -> None:
    body = "x" * 4_194_304
    await member.send(body)
    async with member.announced():
        [found] = await member.receive_all("received", 1)
        assert found.body == body.encode()
        await member.ack("ack", found)


@scenario()
async def receives(member: Member) -> None:
    """One that ends empty, and some that ask for too little."""
    async with member.announced():
        start = member.talk.now_ms()
        await member.receive("empty", long_polling_timeout=Duration(seconds=1))
        assert 4500 < member.talk.now_ms() - start < 8000, "the shortest poll is of 5 s"
        await member.send("a")
        await member.receive("a batch of none", batch_size=0)
        await member.ack("ack", *await member.receive_all("received", 1))
        request = receive(member.name, member.name, batch_size=1)
        for version in ("5.2.0", "5.0.2"):
            replies = await member.talk.replies(
                request, client_id=ME, timeout="3S", x_mq_client_version=version
            )
            member.talk.say(f"a deadline too short for a poll of {version}", *map(shown, replies))


@scenario()
async def consumed_directly(member: Member) -> None:
    talk = member.talk
    with RawClient(talk.server) as raw:
        properties = {"UNIQ_KEY": talk.new_id()}
        offset_id = raw.send(member.name, 0, b"body", properties, born_ms=1_790_000_000_005).fields["msgId"]
    async with talk.announced(consumer(member.name, [member.name]), ME) as stream:
        fields = {"consumerGroup": member.name, "clientId": ME, "msgId": offset_id, "brokerName": "broker-a"}
        asked = asyncio.get_running_loop().run_in_executor(None, lambda: talk.remoting(309, **fields))
        question = await stream.next(20)
        talk.say("asked", shown(question))
        nonce = question.verify_message_command.nonce
        answer = TelemetryCommand(
            status=Status(code=Code.FAILED_TO_CONSUME_MESSAGE),
            verify_message_result=VerifyMessageResult(nonce=nonce),
        )
        stream.send(answer)
        talk.say_reply("answered", 309, await asked)
