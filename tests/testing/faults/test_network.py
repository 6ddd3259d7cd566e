"""Slow, sliced and lost bytes: at the server's own sockets and at the proxy."""

import asyncio
import socket
import ssl
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame
from pocketmq.testing import EmbeddedServer, RocketMQ
from pocketmq.testing.faults.shaping import Line, Shape
from pocketmq.testing.faults.tcp_proxy import HIGH_BYTES, TcpProxy

from frames_client import Raw, raw
from stream_server import stream_server
from waiting import until


def heartbeat(client: object, name: str) -> None:
    client.send(34, body=f'{{"clientID": "{name}"}}'.encode())  # type: ignore[attr-defined]
    client.receive()  # type: ignore[attr-defined]


def test_latency_holds_back_every_answer_of_one_client(one: RocketMQ) -> None:
    topic = one.topic("orders")
    with raw(one.server.broker_addr) as slow, raw(one.server.broker_addr) as quick:
        heartbeat(slow, "slow")
        heartbeat(quick, "quick")
        rule = one.faults.network("slow", latency=1000)
        quick.ask(30, topic=topic, queueId=0)
        rule.remove()
        one.faults.network("slow", latency=0.05)
        begun = time.monotonic()
        slow.ask(30, topic=topic, queueId=0)
        assert time.monotonic() - begun >= 0.05


def test_bandwidth_is_bytes_a_second(one: RocketMQ, client: Raw) -> None:
    topic = one.topic("orders")
    rule = one.faults.network(bandwidth=20_000)
    one.faults.alter(code=30, body=b"x" * 2000)
    begun = time.monotonic()
    client.ask(30, topic=topic, queueId=0)
    assert time.monotonic() - begun >= 0.1
    rule.remove()
    one.faults.network(bandwidth=1).remove()
    assert client.ask(30, topic=topic, queueId=0).code == 0


def test_the_brokers_own_registration_is_not_slowed(one: RocketMQ) -> None:
    one.faults.network(latency=60_000)
    one.topic("orders")  # returns once the name server has it, or fails after some seconds


def test_connections_inside_tls_are_cut_and_slowed_too() -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with EmbeddedServer(emulate="5") as server:
        one = RocketMQ(server)
        host, _, port = server.broker_addr.partition(":")
        plain = socket.create_connection((host, int(port)), timeout=2)
        with context.wrap_socket(plain) as inside:
            one.faults.network(slice_bytes=5)
            one.faults.refuse(code=30, response="SYSTEM_BUSY")
            one.faults.disconnect(code=30, within_body=True)
            inside.sendall(encode_frame(Command(30, 1, fields={"topic": "t", "queueId": "0"})) * 2)
            received = b""
            while data := inside.recv(65536):
                received += data
        length = int.from_bytes(received[:4], "big") + 4
        assert FrameCutter().feed(received[:length])[0].code == 2
        assert 0 < len(received) - length < length


def test_an_answer_in_slices_arrives_whole(one: RocketMQ, client: Raw) -> None:
    """How many slices a peer reads at once depends on its speed: that they leave apart is claimed of the line below."""
    topic = one.topic("orders")
    one.faults.network(slice_bytes=7)
    assert client.ask(30, topic=topic, queueId=0).fields == {"offset": "0"}


def test_a_half_open_connection_stays_and_is_silent(one: RocketMQ, client: Raw) -> None:
    topic = one.topic("orders")
    heartbeat(client, "gone")
    rule = one.faults.network("gone", half_open=True)
    client.send(30, topic=topic, queueId=0)
    one.requests.wait_for(code=30, client_id="gone")
    assert one.requests.count(code=30, response="SUCCESS") == 0
    rule.remove()
    with pytest.raises((EOFError, ConnectionResetError)):
        client.receive()


# -- a line


@given(
    st.lists(st.binary(max_size=40), max_size=8),
    st.one_of(st.none(), st.integers(1, 9)),
    st.sampled_from([None, 10_000_000]),
)
def test_bytes_keep_their_order_and_none_is_lost(
    pieces: list[bytes], slice_bytes: int | None, bandwidth: int | None
) -> None:
    async def travel() -> list[bytes]:
        written: list[bytes] = []
        drained: list[bool] = []
        loop = asyncio.get_running_loop()
        line = Line(loop, written.append, lambda: drained.append(True))
        line.shape = Shape(0.0, bandwidth, slice_bytes)
        for piece in pieces:
            line.put(piece)
        await until(lambda: line.waiting_bytes == 0)
        assert bool(drained) is any(pieces)
        return written

    written = asyncio.run(travel())
    assert b"".join(written) == b"".join(pieces)
    assert all(len(piece) <= (slice_bytes or 40) for piece in written)


def test_two_shapes_of_one_connection_add_up() -> None:
    assert Shape(0.1, 100, None).over(Shape(0.2, 50, 7)) == Shape(0.30000000000000004, 50, 7)
    assert Shape(half_open=True).over(Shape()).half_open


# -- the proxy


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Echoes until the stream ends, then says so and closes."""
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.write(b"bye")
    writer.write_eof()
    await writer.drain()


async def test_a_proxy_passes_bytes_and_half_closes() -> None:
    async with stream_server(echo) as port, TcpProxy(f"127.0.0.1:{port}") as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(b"x" * 3_000_000)
        writer.write_eof()
        assert await reader.read() == b"x" * 3_000_000 + b"bye"
        writer.close()
        await until(lambda: not proxy._links)


async def test_a_proxys_latency_is_once_a_round_trip() -> None:
    async with stream_server(echo) as port, TcpProxy(f"127.0.0.1:{port}", shape=Shape(latency=0.05)) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        begun = time.monotonic()
        writer.write(b"x")
        await reader.readexactly(1)
        assert time.monotonic() - begun >= 0.05
        [link] = proxy._links
        assert [way.line.shape.latency for way in link.ways] == [0.05, 0]
        proxy.shape = Shape(half_open=True)
        writer.write(b"lost")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.05)
        writer.close()


async def test_a_proxy_whose_target_is_gone_closes_the_connection() -> None:
    async with TcpProxy("127.0.0.1:1") as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        try:
            assert await reader.read(1) == b""
        except ConnectionResetError:
            pass
        writer.close()


async def test_a_proxy_reads_no_further_than_its_client() -> None:
    """A client that does not read: what the target sends stays with the target."""
    sent = 0

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        try:
            while sent < 50_000_000:
                writer.write(b"x" * 65536)
                await writer.drain()
                sent += 65536
        except ConnectionError:
            pass

    async with (
        stream_server(flood) as port,
        TcpProxy(f"127.0.0.1:{port}", shape=Shape(bandwidth=1_000_000)) as proxy,
    ):
        _, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        await until(lambda: sent > 0)
        [link] = proxy._links
        await until(lambda: link.ways and link.ways[0].line.waiting_bytes > HIGH_BYTES)
        assert sent < 30_000_000
        writer.transport.abort()


async def test_stopping_a_proxy_cuts_its_connections(caplog: pytest.LogCaptureFixture) -> None:
    async with stream_server(echo) as port:
        proxy = await TcpProxy(f"127.0.0.1:{port}").start()
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(b"x")
        await reader.readexactly(1)
        await proxy.stop()
        try:
            assert await reader.read(1) == b""
        except ConnectionResetError:
            pass
        writer.close()
        await asyncio.sleep(0)
    assert "tcp_proxy.py" not in caplog.text


async def test_a_connection_of_a_proxy_that_was_half_open_is_closed() -> None:
    """To go on would leave a hole in the bytes; new connections are whole."""
    async with stream_server(echo) as port, TcpProxy(f"127.0.0.1:{port}") as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        proxy.shape = Shape(half_open=True)
        writer.write(b"lost")
        await writer.drain()
        proxy.shape = Shape(latency=0.01)
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(b"y")
        assert await reader.readexactly(1) == b"y"
        writer.close()
