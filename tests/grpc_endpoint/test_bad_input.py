"""Bad input at the whole port: an official code or a closed connection, one line in the log at most, others unaffected.

The single rules are in `http2/test_bad_peers.py`, `http2/test_port_limits.py`, `messages/test_decoding.py` and beside
the handlers; random input in `test_random_calls.py` and `http2/test_beside_h2.py`.
"""

import gzip
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from pocketmq.grpc_endpoint import messages as m
from pocketmq.grpc_endpoint.http2 import frames
from pocketmq.grpc_endpoint.http2.frames import ErrorCode, frame
from pocketmq.testing import EmbeddedServer, RocketMQ

from grpc_client import GrpcClient, RpcError, encode, framed
from grpc_companion import T, acked, announce, handle_of, hidden, receive, received, sent
from http2_echo import CALL, PREFACE, goaway_in, raw_peer
from waiting import until

LONGEST = 100_000
Try = Callable[[str], Awaitable[object]]


@pytest.fixture
async def server() -> AsyncIterator[EmbeddedServer]:
    async with EmbeddedServer(
        grpc_port=0, grpcMaxInboundMessageSize=LONGEST, maxMessageSize=50_000
    ) as server:
        rocketmq = RocketMQ(server)
        rocketmq.topic("orders", queues=1)
        rocketmq.group("billing")
        yield server


def written(data: bytes) -> Try:
    """These bytes; the code of the GOAWAY."""

    async def attempt(address: str) -> object:
        async with raw_peer(int(address.rpartition(":")[2])) as peer:
            peer.write(data)
            found = goaway_in(await peer.rest())
            return None if found is None else ErrorCode(found[0])

    return attempt


def asked(name: str, data: bytes, **headers: str) -> Try:
    """A call with these bytes; its gRPC status, or the `Code` of its reply."""

    async def attempt(address: str) -> object:
        async with GrpcClient.connected(address) as client:
            call = client.open(name, data, **headers)
            try:
                reply = await call.next()
            except RpcError as error:
                return error.status
            return reply.status.code

    return attempt


def consumed(request_of: Callable[[m.Message], Any]) -> Try:
    """A request about a message that was received; the `Code` of its reply."""

    async def attempt(address: str) -> object:
        async with GrpcClient.connected(address) as client:
            await announce(client)
            await client.ask(sent())
            (message,) = await received(client)
            code = (await client.ask(request_of(message))).status.code
            assert (await client.ask(acked([handle_of(message)]))).status == m.OK
            return code

    return attempt


def dated(born_ms: int, body: bytes = b"x") -> m.SendMessageRequest:
    properties = m.SystemProperties(message_id="far", born_timestamp=m.timestamp_of(born_ms))
    return m.SendMessageRequest(messages=[m.Message(topic=T, body=body, system_properties=properties)])


async def vanished(address: str) -> object:
    """In a receive; a message that arrives afterwards goes to another client."""
    async with GrpcClient.connected(address) as client:
        await announce(client)
        client.open("ReceiveMessage", receive())
        await client.ping()
    async with GrpcClient.connected(address) as other:
        await announce(other)
        waiting = other.open("ReceiveMessage", receive())
        await other.ping()
        await other.ask(sent())
        (message,) = [reply.message for reply in await waiting.all() if reply.HasField("message")]
        return (await other.ask(acked([handle_of(message)]))).status.code


async def deaf(address: str) -> object:
    """A window that never opens: the reply waits, and a reset frees it."""
    async with GrpcClient.connected(address, window=0) as client:
        await client.ping()
        call = client.open("QueryRoute", m.QueryRouteRequest(topic=T))
        await client.ping()
        assert not call.is_ended
        call.cancel()
        await client.ping()
        return "open"


async def half_closed(address: str) -> object:
    """Data after the client closed its side resets the stream only."""
    async with raw_peer(int(address.rpartition(":")[2])) as peer:
        peer.write(
            PREFACE + frame(frames.HEADERS, frames.END_HEADERS, 1, CALL) + frame(frames.DATA, 1, 1, b"")
        )
        peer.write(frame(frames.DATA, 0, 1, b"late") + frame(frames.PING, 0, 0, bytes(8)))
        while (found := await peer.frame())[0] != frames.PING:
            assert found[0] != frames.GOAWAY
        return "open"


FORGED = "0 99999999999999 60000 0 0 broker-a 0 0 99999999"
EXPIRED = "0 1700000000000 60000 0 0 broker-a 0 0 0"
ZIPPED = {"grpc_encoding": "gzip"}
BOMB = CALL + b"\x40\x01a\x7f\xa1\x1e" + b"x" * 4000 + b"\xbe" * 4000
UTF8 = framed(b"\x0a\x03\x12\x01\xff")
ROWS: list[tuple[str, Try, object, int]] = [
    ("HTTP/1 on the port", written(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"), None, 1),
    ("garbage", written(bytes(range(200))), None, 1),
    ("a PROXY preamble, which is not read", written(b"PROXY TCP9 x\r\n"), None, 1),
    ("header bomb", written(PREFACE + frame(1, 4, 1, BOMB)), ErrorCode.ENHANCE_YOUR_CALM, 1),
    ("window that never opens", deaf, "open", 0),
    ("half-closed stream", half_closed, "open", 0),
    ("message over the limit", asked("SendMessage", framed(bytes(LONGEST + 1))), 8, 0),
    (
        "body over the limit",
        asked("SendMessage", framed(encode(dated(1, bytes(50_001))))),
        m.Code.MESSAGE_BODY_TOO_LARGE,
        0,
    ),
    (
        "gzip bomb",
        asked("SendMessage", framed(gzip.compress(bytes(LONGEST * 9)), compressed=1), **ZIPPED),
        8,
        0,
    ),
    ("invalid UTF-8", asked("QueryRoute", UTF8), 13, 1),
    ("truncated protobuf", asked("QueryRoute", framed(b"\x0a\x05ab")), 13, 1),
    (
        "unknown field",
        asked("QueryRoute", framed(encode(m.QueryRouteRequest(topic=T)) + b"\xfa\x7f\x02ab")),
        m.Code.OK,
        0,
    ),
    ("unknown enum", asked("Heartbeat", framed(b"\x10\x63")), m.Code.UNRECOGNIZED_CLIENT_TYPE, 0),
    ("expired handle", consumed(lambda _: acked([EXPIRED])), m.Code.INVALID_RECEIPT_HANDLE, 0),
    ("forged handle", consumed(lambda _: acked(["x y z"])), m.Code.INTERNAL_SERVER_ERROR, 0),
    ("endless invisible time", consumed(lambda one: hidden(one, 1 << 50)), m.Code.ILLEGAL_INVISIBLE_TIME, 0),
    ("clock in 1970", asked("SendMessage", framed(encode(dated(1)))), m.Code.OK, 0),
    ("clock in 2262", asked("SendMessage", framed(encode(dated(9_223_372_036_000)))), m.Code.OK, 0),
    ("clock before the epoch", asked("SendMessage", framed(encode(dated(-1)))), m.Code.OK, 0),
    (
        "a date that is none",
        asked("SendMessage", framed(encode(sent())), x_mq_date_time="yesterday"),
        m.Code.OK,
        0,
    ),
    ("a client that vanishes in a receive", vanished, m.Code.OK, 0),
]


@pytest.mark.parametrize(
    ("attempt", "outcome", "lines"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
async def test_bad_input_ends_with_its_code_and_harms_nobody(
    server: EmbeddedServer, caplog: pytest.LogCaptureFixture, attempt: Try, outcome: object, lines: int
) -> None:
    async with GrpcClient.connected(server.grpc_endpoint) as other:
        assert (await other.ask(m.QueryRouteRequest(topic=T))).status == m.OK
        with caplog.at_level(logging.WARNING, "pocketmq"):
            found = await attempt(server.grpc_endpoint)
            assert (await other.ask(m.QueryRouteRequest(topic=T))).status == m.OK
        assert found == outcome
        assert len(caplog.records) == lines, caplog.text
        beside = server.node.side_servers[0]
        await until(lambda: beside.open_connections == 1)
