"""Bounds of a whole port: its connections, and what they make it keep together."""

import asyncio
import logging

import pytest
from pocketmq.grpc_endpoint.http2 import port as port_of_http2
from pocketmq.grpc_endpoint.http2.frames import ErrorCode
from pocketmq.grpc_endpoint.http2.server_stream import RECEIVE_WINDOW

from grpc_client import ClientCall, GrpcClient, framed
from http2_echo import Limited, echo_port, raw_peer
from waiting import until


def begun(client: GrpcClient, size: int) -> ClientCall:
    """A request of which so many bytes have been sent, and one is missing."""
    call = client.open("/echo/Unary")
    call.send_bytes(b"\0" + (size + 1).to_bytes(4) + bytes(size))
    return call


async def test_the_client_that_keeps_most_is_closed_when_all_together_keep_too_much(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each of the three is within the limit of a connection."""
    limits = Limited(message_bytes=2_000_000, port_bytes=1_500_000)
    with caplog.at_level(logging.WARNING, "pocketmq.grpc"):
        async with (
            echo_port(limits) as (port, echo, server),
            GrpcClient.connected(port) as small,
            GrpcClient.connected(port) as large,
            GrpcClient.connected(port) as last,
        ):
            kept = begun(small, 300_000)
            begun(large, 900_000)
            await until(lambda: server.memory.bytes > 1_200_000)
            also_kept = begun(last, 600_000)
            await large.is_closed.wait()
            assert large.goaway is not None
            assert large.goaway[0] == ErrorCode.ENHANCE_YOUR_CALM
            await until(lambda: server.memory.bytes == 300_005 + 600_005)
            for call, size in ((kept, 300_000), (also_kept, 600_000)):
                call.send_bytes(b"x", end=True)
                assert [len(message) for message in await call.all()] == [size + 1]
            assert server.memory.bytes == 0
    assert ["keep more than 1500000 bytes" in one.getMessage() for one in caplog.records] == [True]
    assert not echo.open


async def test_the_memory_of_calls_that_end_in_any_way_is_free_again() -> None:
    async with echo_port(Limited(message_bytes=100_000)) as (port, _, server):
        async with GrpcClient.connected(port) as client:
            begun(client, 1000).cancel()
            begun(client, 1000).half_close()
            begun(client, 1000).send_bytes(b"x" + b"\0\xff\xff\xff\xff", end=True)  # the next one is too long
            await client.ping()
            assert server.memory.bytes == 0
            begun(client, 1000)
            await client.ping()
            assert server.memory.bytes == 1005
        await until(lambda: not server.connections)
        assert server.memory.bytes == 0


async def test_a_connection_beyond_the_limit_is_closed_and_one_line_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "pocketmq.grpc"):
        async with (
            echo_port(Limited(connections=2)) as (port, _, server),
            GrpcClient.connected(port) as first,
        ):
            await first.ping()
            async with GrpcClient.connected(port) as second:
                await second.ping()
                for _ in range(3):
                    async with GrpcClient.connected(port) as refused:
                        await refused.is_closed.wait()
                assert await first.open("/echo/Unary", framed(b"x")).all() == [b"x"]
                assert await second.open("/echo/Unary", framed(b"x")).all() == [b"x"]
            await until(lambda: len(server.connections) == 1)
            async with GrpcClient.connected(port) as third:
                assert await third.open("/echo/Unary", framed(b"x")).all() == [b"x"]
    assert [one.getMessage() for one in caplog.records] == [
        "closing new connections: 2 are open, the most that are allowed"
    ]


@pytest.mark.parametrize(
    "sent",
    [None, b"\0" + (1001).to_bytes(4) + bytes(1000), framed(b"whole")],
    ids=["headers only", "a part of a message", "a whole message"],
)
async def test_a_call_whose_end_never_arrives_ends_with_its_connection(
    sent: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Its stream is open, so the connection is not idle; nothing waits for the call, and it has no deadline yet."""
    with caplog.at_level(logging.WARNING, "pocketmq.grpc"):
        async with (
            echo_port(Limited(idle_seconds=0.2)) as (port, echo, server),
            GrpcClient.connected(port) as client,
            GrpcClient.connected(port) as both_ways,
        ):
            both_ways.open("/echo/Each")
            call = client.open("/echo/Unary")
            if sent is not None:
                call.send_bytes(sent)
            await client.is_closed.wait()
            await until(lambda: len(echo.open) == 1)
            await both_ways.ping()
            assert server.memory.bytes == 0
    assert ["it does not finish its requests" in one.getMessage() for one in caplog.records] == [True]


async def test_the_client_with_most_calls_is_closed_when_the_port_has_too_many(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "pocketmq.grpc"):
        async with (
            echo_port(Limited(port_calls=50, idle_seconds=0.4)) as (port, echo, _),
            GrpcClient.connected(port) as few,
            GrpcClient.connected(port) as many,
        ):
            kept = [few.open("/echo/Never", framed(b"")) for _ in range(20)]
            for _ in range(40):
                many.open("/echo/Never", framed(b""))
            await many.is_closed.wait()
            assert len(echo.open) == 20
            assert await few.open("/echo/Unary", framed(b"x")).all() == [b"x"]
            assert not any(call.is_ended for call in kept)
    assert ["more than 50 open calls" in one.getMessage() for one in caplog.records] == [True]


async def test_a_stop_waits_as_long_as_its_limit_says_and_no_longer_than_the_calls() -> None:
    loop = asyncio.get_running_loop()
    async with (
        echo_port(Limited(shutdown_seconds=0.2)) as (port, _, server),
        GrpcClient.connected(port, window=0) as deaf,
    ):
        await deaf.ping()
        deaf.open("/echo/Large", framed(b"1000"))
        await deaf.ping()
        began = loop.time()
        await server.stop()
        assert loop.time() - began >= 0.198  # uvloop's timers may be a millisecond early
        await deaf.is_closed.wait()
    async with (
        echo_port(Limited(shutdown_seconds=60)) as (port, _, server),
        GrpcClient.connected(port) as client,
    ):
        await client.ping()
        async with asyncio.timeout(30):
            await server.stop()


async def test_the_windows_of_a_stream_are_within_the_limit_of_a_connection() -> None:
    """What a client may send before it hears of us is less than what makes the port close it."""
    assert Limited().port_bytes > Limited().message_bytes + 2 * RECEIVE_WINDOW + Limited().unread_bytes


async def test_a_connection_that_says_nothing_is_closed_also_without_tls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(port_of_http2, "PREFACE_SECONDS", 0.0)
    async with echo_port(Limited(idle_seconds=0.4)) as (port, _, _), raw_peer(port) as peer:
        assert await peer.rest() == b""  # an idle one gets a GOAWAY
