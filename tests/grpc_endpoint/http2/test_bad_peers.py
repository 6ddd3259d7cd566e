"""Peers that flood, vanish, or send what is no call: the connection or the call ends with the right code, one line is
logged, and other connections notice nothing. The rules of HTTP/2 are in `test_rules.py`."""

import gzip
import logging
from collections.abc import Callable

import pytest
from pocketmq.grpc_endpoint.http2 import frames
from pocketmq.grpc_endpoint.http2.frames import ErrorCode, frame, settings
from pocketmq.grpc_endpoint.http2.limits import CONTROL_FRAMES, FRAMES_OF_A_CALL, RESETS, SETTINGS

from grpc_client import GrpcClient, RpcError, framed
from http2_echo import CALL, PREFACE, Limited, echo_port, goaway_in, raw_peer
from waiting import until

HEADERS = {
    ":method": "POST",
    ":scheme": "http",
    ":path": "/echo/Unary",
    ":authority": "test",
    "content-type": "application/grpc",
}


def call_frames(stream_id: int = 1, block: bytes = CALL, *, flags: int = frames.END_HEADERS) -> bytes:
    return frame(frames.HEADERS, flags, stream_id, block)


async def after(data: bytes, *, limits: Limited | None = None) -> tuple[int, str] | None:
    """The GOAWAY that these bytes are answered with. Another connection works before and after."""
    async with echo_port(limits) as (port, _, _), GrpcClient.connected(port) as other:
        assert await other.open("/echo/Unary", b"\0\0\0\0\1x").all() == [b"x"]
        async with raw_peer(port) as peer:
            peer.write(data)
            found = goaway_in(await peer.rest())
        assert await other.open("/echo/Unary", b"\0\0\0\0\1y").all() == [b"y"]
    return found


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "it speaks HTTP/1"),
        (b"POST /a HTTP/1.1\r\n", "it speaks HTTP/1"),
        (b"\x00\x01\x02\x03", "it speaks no HTTP/2"),
        (b"PRI * HTTP/2.0\r\n\r\nXX", "it speaks no HTTP/2"),
        (b"\x00\x00\x00\xf9\x00\x00\x00\x65{", "it speaks no HTTP/2"),
    ],
    ids=["GET", "POST", "garbage", "nearly a preface", "a remoting frame"],
)
async def test_peers_that_speak_something_else_are_closed_with_one_line(
    data: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "pocketmq.grpc"):
        assert await after(data) is None
    assert [reason in record.getMessage() for record in caplog.records] == [True]


FLOODS: list[tuple[str, int, Callable[[int], bytes]]] = [
    ("settings", SETTINGS, lambda _: settings({3: 1})),
    ("pings", CONTROL_FRAMES, lambda _: frame(frames.PING, 0, 0, bytes(8))),
    ("priorities", CONTROL_FRAMES, lambda _: frame(frames.PRIORITY, 0, 1, bytes(5))),
    ("unknown frames", CONTROL_FRAMES, lambda _: frame(0x77, 0, 0, b"?")),
    ("small windows", CONTROL_FRAMES, lambda _: frames.window_update(0, 1)),
    ("empty data", CONTROL_FRAMES, lambda number: frame(frames.DATA, 0, 1) if number else call_frames()),
]


@pytest.mark.parametrize(("most", "one"), [row[1:] for row in FLOODS], ids=[row[0] for row in FLOODS])
async def test_a_flood_of_frames_that_carry_no_request_ends_the_connection(
    most: int, one: Callable[[int], bytes]
) -> None:
    goaway = await after(PREFACE + b"".join(one(number) for number in range(most + 2 + FRAMES_OF_A_CALL)))
    assert goaway is not None
    assert goaway[0] == ErrorCode.ENHANCE_YOUR_CALM


async def test_a_busy_client_may_return_the_windows_of_its_replies() -> None:
    """As grpc's C core does after each reply: a window of the stream, one of the connection, and pings."""
    calls = CONTROL_FRAMES // 3
    async with echo_port() as (port, _, _), raw_peer(port) as peer:
        peer.write(PREFACE)
        for number in range(calls):
            stream_id = 2 * number + 1
            opened = frames.window_update(0, 6) + frames.window_update(stream_id, 6)
            peer.write(call_frames(stream_id, flags=5) + opened + frame(frames.PING, 0, 0, bytes(8)) * 2)
        peer.write(frame(frames.PING, 0, 0, b"the last"))
        while True:
            kind, flags, _, payload = await peer.frame()
            assert kind != frames.GOAWAY, payload
            if (kind, flags, payload) == (frames.PING, frames.ACK, b"the last"):
                break


async def test_rapid_resets_end_the_connection_and_leave_no_call_behind() -> None:
    async with echo_port() as (port, echo, _), raw_peer(port) as peer:
        peer.write(PREFACE)
        for number in range(RESETS + 1):
            stream_id = 2 * number + 1
            reset = frame(frames.RST_STREAM, 0, stream_id, ErrorCode.CANCEL.to_bytes(4))
            peer.write(call_frames(stream_id, CALL.replace(b"Unary", b"Never")) + reset)
        goaway = goaway_in(await peer.rest())
        assert goaway is not None
        assert goaway[0] == ErrorCode.ENHANCE_YOUR_CALM
        assert not echo.open


async def test_calls_beyond_the_limit_are_refused_and_the_others_go_on() -> None:
    limits = Limited(calls=3)
    async with echo_port(limits) as (port, _, _), GrpcClient.connected(port) as client:
        await client.ping()
        held = [client.open("/echo/Never", framed(b"")) for _ in range(3)]
        with pytest.raises(Exception, match="Max outbound streams"):  # h2 knows our limit
            client.open("/echo/Unary", framed(b"x"))
        held[0].cancel()
        assert await client.open("/echo/Unary", framed(b"x")).all() == [b"x"]


REFUSED: list[tuple[str, dict[str, str], str, str]] = [
    ("GET", {":method": "GET"}, "405", "Method 'GET' is not supported"),
    ("text", {"content-type": "text/plain"}, "415", "Content-Type 'text/plain' is not supported"),
    ("a path without slash", {":path": "echo"}, "404", "Expected path to start with /: echo"),
    ("bad timeout", {"grpc-timeout": "3X"}, "200", "Invalid timeout: 3X"),
    ("unknown encoding", {"grpc-encoding": "snappy"}, "200", "Can't find decompressor for snappy"),
]


@pytest.mark.parametrize(
    ("change", "status", "text"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
async def test_headers_that_are_no_call_are_refused_and_the_connection_stays(
    change: dict[str, str], status: str, text: str
) -> None:
    async with echo_port() as (port, _, _), GrpcClient.connected(port) as client:
        call = client.open_raw(HEADERS | change)
        with pytest.raises(RpcError) as error:
            await call.all()
        assert (call.headers[":status"], error.value.text) == (status, text)
        assert await client.open("/echo/Unary", framed(b"x")).all() == [b"x"]


MESSAGES: list[tuple[str, bytes, dict[str, str], int]] = [
    ("longer than allowed", framed(bytes(1001)), {}, 8),
    ("announced longer than allowed", b"\0\xff\xff\xff\xff", {}, 8),
    ("compressed without encoding", framed(b"x", compressed=1), {}, 13),
    ("no gzip", framed(b"xyz", compressed=1), {"grpc-encoding": "gzip"}, 13),
    ("gzip cut", framed(gzip.compress(b"xyz")[:-9], compressed=1), {"grpc-encoding": "gzip"}, 13),
    ("gzip bomb", framed(gzip.compress(bytes(100_000)), compressed=1), {"grpc-encoding": "gzip"}, 8),
    ("bad flag", framed(b"x", compressed=7), {}, 13),
    ("half a message", b"\0\0\0\0\5ab", {}, 13),
]


@pytest.mark.parametrize(
    ("data", "others", "status"), [row[1:] for row in MESSAGES], ids=[row[0] for row in MESSAGES]
)
async def test_bad_messages_end_their_call_with_the_right_status(
    data: bytes, others: dict[str, str], status: int
) -> None:
    async with (
        echo_port(Limited(message_bytes=1000)) as (port, echo, _),
        GrpcClient.connected(port) as client,
    ):
        with pytest.raises(RpcError) as error:
            await client.open_raw(HEADERS | others, None, data).all()
        assert error.value.status == status
        assert await client.open("/echo/Unary", framed(b"x")).all() == [b"x"]
        assert not echo.open


async def test_gzip_is_understood() -> None:
    async with echo_port() as (port, _, _), GrpcClient.connected(port) as client:
        data = framed(gzip.compress(b"hello"), compressed=1) + framed(b"plain")
        found = await client.open_raw(HEADERS | {"grpc-encoding": "gzip"}, None, data).all()
        assert found == [b"hello", b"plain"]


async def test_many_unfinished_requests_of_one_connection_are_bounded() -> None:
    limits = Limited(message_bytes=2_000_000)
    async with echo_port(limits) as (port, _, server), GrpcClient.connected(port) as client:
        calls = []
        for _ in range(5):
            call = client.open("/echo/Unary")
            call.send_bytes(b"\0" + (1_900_000).to_bytes(4) + bytes(900_000))
            calls.append(call)
        await client.ping()
        with pytest.raises(RpcError) as error:
            await calls[-1].all()
        assert error.value.status == 8
        (connection,) = server.connections
        assert connection.out.unfinished_bytes < 4_000_000


async def test_a_client_that_vanishes_cancels_its_calls() -> None:
    async with echo_port() as (port, echo, _):
        async with GrpcClient.connected(port) as client:
            for _ in range(3):
                client.open("/echo/Never", framed(b""))
            await client.ping()
            assert len(echo.open) == 3
        await until(lambda: not echo.open)  # the server hears of it from the system
        assert echo.cancelled == 3


async def test_a_failing_program_closes_the_connection_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async with echo_port() as (port, _, _), GrpcClient.connected(port) as client:
        call = client.open("/echo/Large", framed(b"not a number"))
        await client.is_closed.wait()
        assert call.status == -1
    assert "a request failed" in caplog.text
