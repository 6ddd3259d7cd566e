"""Servers that answer garbage: a producer gets a ClientError in time, a consumer waits until it is over.

The servers are real; a proxy changes their answers.
"""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any

import pytest
from pocketmq.broker.node import Node
from pocketmq.client import ClientError, NotReachable, Producer, PullConsumer, SendResult
from pocketmq.client.push import push_queues as puller
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame

from client_waits import Seen, consuming, open_sockets, send
from stream_server import linked, stream_server
from waiting import until

LONG = 30.0
Change = Callable[[Command], bytes | None]


def other(**changes: Any) -> Callable[[Command], bytes]:
    def change(reply: Command) -> bytes:
        for name, value in changes.items():
            setattr(reply, name, value)
        return encode_frame(reply)

    return change


def wrong_opaque(reply: Command) -> bytes:
    reply.opaque = (reply.opaque + 100_000) & 0x7FFFFFFF
    return encode_frame(reply)


def nonsense_fields(reply: Command) -> bytes:
    reply.fields = dict.fromkeys(reply.fields or {"offset": ""}, "nonsense")
    return encode_frame(reply)


GARBAGE: dict[str, Change] = {
    "a closed connection": lambda reply: None,
    "half a frame": lambda reply: encode_frame(reply)[:-3],
    "another opaque": wrong_opaque,
    "a huge length": lambda reply: struct.pack(">i", 0x7FFFFFFF) + encode_frame(reply)[4:],
    "a negative length": lambda reply: struct.pack(">i", -9) + encode_frame(reply)[4:],
    "a header longer than the frame": lambda reply: struct.pack(">iI", 12, 0xFFFFFF) + bytes(8),
    "JSON without end": lambda reply: struct.pack(">iI", 14, 10) + b'{"code":0,',
    "JSON that is no header": lambda reply: struct.pack(">iI", 14, 10) + b"[1,2,3,4] ",
    "an unknown header form": lambda reply: struct.pack(">iI", 14, 7 << 24 | 10) + bytes(10),
    "noise": lambda reply: bytes(range(255, 0, -1)),
    "no fields": other(fields={}),
    "nonsense in the fields": nonsense_fields,
    "a body of noise": other(body=b"\xff{{[\x00" * 9),
    "JSON of another kind as body": other(body=b'{"queueDatas":7,"consumerIdList":{},"lockOKMQSet":1}'),
    "no body": other(body=None),
    "an unknown code": other(code=9999),
    "a request of an unknown code": other(flag=0, code=9999),
    "a request for the consumer": other(flag=0, code=309, body=b"noise"),
    "a transaction check": other(flag=0, code=39, fields={"tranStateTableOffset": "x"}, body=b"\x00" * 200),
}
GOOD: dict[str, Callable[[Command], bytes]] = {
    "each reply twice": lambda reply: encode_frame(reply) * 2,
    "a stray reply before": lambda reply: encode_frame(Command(0, 0x7FFFFF00, 1)) + encode_frame(reply),
}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A held pull whose answer is lost ends soon."""
    monkeypatch.setattr(puller, "PULL_TIMEOUT_MS", 200)
    monkeypatch.setattr(puller, "BROKER_SUSPEND_MAX_MS", 100)


class Between:
    """A proxy in front of a server; `change` makes bytes of each reply for the client, or ends the connection."""

    def __init__(self, target: str, change: Change = encode_frame) -> None:
        self.change, self._target = change, target

    async def _back(self, from_server: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        cutter = FrameCutter()
        with contextlib.suppress(OSError):
            while data := await from_server.read(65536):
                for reply in cutter.feed(data):
                    if (changed := self.change(reply)) is None:
                        return
                    writer.write(changed)
                await writer.drain()

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[str]:
        """Its address."""
        async with stream_server(partial(linked, self._target, back=self._back)) as port:
            yield f"127.0.0.1:{port}"


@contextlib.asynccontextmanager
async def both(node: Node) -> AsyncIterator[tuple[Between, str]]:
    """A proxy in front of the broker, and the address of one in front of the name server, whose routes lead there."""
    broker = Between(node.broker_address)
    async with broker.opened() as address:

        def lead_there(reply: Command) -> bytes:
            if reply.body is not None:
                reply.body = bytes(reply.body).replace(node.broker_address.encode(), address.encode())
            return encode_frame(reply)

        async with Between(node.namesrv_address, lead_there).opened() as namesrv_addr:
            yield broker, namesrv_addr


@pytest.fixture
async def loop_reports() -> list[dict[str, Any]]:
    """The uncaught exceptions that the event loop reported."""
    found: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: found.append(context))
    return found


async def all_at_once(scenarios: dict[str, Coroutine[Any, Any, None]]) -> None:
    """Every kind of garbage has proxies of its own, so they need not wait for each other."""
    async with asyncio.timeout(LONG):
        ends = await asyncio.gather(*scenarios.values(), return_exceptions=True)
    failed = {name: end for name, end in zip(scenarios, ends, strict=True) if end is not None}
    assert not failed, failed


async def sends_through(garbage: Change, node: Node, *, is_good: bool) -> None:
    timeout_ms = 30_000 if is_good else 200
    allowed = (SendResult, type(None)) if is_good else (SendResult, type(None), ClientError)
    async with (
        both(node) as (broker, namesrv_addr),
        Producer("p", namesrv_addr=namesrv_addr, mq_client_api_timeout=300) as producer,
    ):
        await producer.send("T", b"before", timeout_ms=30_000)
        broker.change = garbage
        ends = await asyncio.gather(
            producer.send("T", b"x", timeout_ms=timeout_ms),
            producer.send_nowait("T", b"x", timeout_ms=timeout_ms),
            producer.send("T", b"x", queue_id=1, timeout_ms=timeout_ms),
            producer.send_oneway("T", b"x"),
            return_exceptions=True,
        )
        assert all(isinstance(end, allowed) for end in ends), ends
        broker.change = encode_frame
        assert (await producer.send("T", b"after", timeout_ms=30_000)).queue_offset >= 0


async def test_a_producer_gets_an_answer_or_an_error_in_time(
    node: Node, loop_reports: list[dict[str, Any]]
) -> None:
    await send(node.namesrv_address, "T", 1)
    sockets = open_sockets()
    await all_at_once(
        {
            name: sends_through(garbage, node, is_good=name in GOOD)
            for name, garbage in (GARBAGE | GOOD).items()
        }
    )
    assert loop_reports == []
    await until(lambda: open_sockets() <= sockets, LONG)


async def consumes_after(garbage: Change, node: Node, topic: str, *, orderly: bool) -> None:
    seen = Seen()
    async with both(node) as (broker, namesrv_addr):
        await send(node.namesrv_address, topic, 4)
        async with consuming(
            namesrv_addr,
            seen,
            group=topic,
            orderly=orderly,
            subscription={topic: "*"},
            pull_time_delay_mills_when_exception=20,
            mq_client_api_timeout=300,
            heartbeat_broker_interval=200,
        ) as consumer:
            await until(lambda: len(set(seen.bodies)) == 4, LONG)
            changed: list[bytes | None] = []

            def change(reply: Command) -> bytes | None:
                changed.append(garbage(reply))
                return changed[-1]

            broker.change = change
            consumer._running.rebalance_now()
            await send(node.namesrv_address, topic, 8)
            await until(lambda: len(changed) > 4, LONG)
            broker.change = encode_frame
            await until(lambda: len({message.message_id for message in seen.messages}) == 12, LONG)


@pytest.mark.slow
async def test_a_consumer_continues_when_the_garbage_ends(
    node: Node, quick: None, caplog: pytest.LogCaptureFixture, loop_reports: list[dict[str, Any]]
) -> None:
    kinds = [(name, garbage, False) for name, garbage in (GARBAGE | GOOD).items()]
    kinds += [(name, GARBAGE[name], True) for name in ("half a frame", "no fields", "no body", "noise")]
    await all_at_once(
        {
            f"{name}, {orderly=}": consumes_after(garbage, node, f"T{number}", orderly=orderly)
            for number, (name, garbage, orderly) in enumerate(kinds)
        }
    )
    assert loop_reports == []
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"brokerDatas":"x","queueDatas":[]}',
        b'{"brokerDatas":[],"queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":2147483647,"writeQueueNums":9}]}',
    ],
)
async def test_a_name_server_that_answers_nonsense_is_skipped(node: Node, body: bytes) -> None:
    await send(node.namesrv_address, "T", 1)
    async with Between(node.namesrv_address, other(body=body)).opened() as liar:
        async with Producer("p", namesrv_addr=f"{liar};{node.namesrv_address}") as producer:
            await producer.send("T", b"x")
        async with PullConsumer("g", namesrv_addr=liar) as consumer:
            with pytest.raises(NotReachable, match="ROUTE"):
                await consumer.queues("T")


async def test_unreadable_messages_are_an_error_of_the_pull(node: Node) -> None:
    await send(node.namesrv_address, "T", 4)
    async with (
        both(node) as (broker, namesrv_addr),
        PullConsumer("g", namesrv_addr=namesrv_addr) as consumer,
    ):
        queue = (await consumer.queues("T"))[0]
        broker.change = other(body=b"\x00\x00\x00\x60" + b"no record" * 20)
        with pytest.raises(ClientError, match="the messages of"):
            await consumer.pull(queue, 0)
        broker.change = encode_frame
        assert (await consumer.pull(queue, 0)).messages
