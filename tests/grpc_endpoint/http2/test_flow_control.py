"""Windows, large messages, many calls at once, pings, the clean stop: what clients do right."""

import asyncio
import ssl

import pytest
from pocketmq.broker.errors import StartError
from pocketmq.grpc_endpoint.http2 import frames
from pocketmq.grpc_endpoint.http2.frames import frame, settings, window_update
from pocketmq.grpc_endpoint.http2.headers import message_text, timeout_seconds

from grpc_client import GrpcClient, framed
from http2_echo import CALL, PREFACE, Limited, echo_port, goaway_in, raw_peer, tls
from http2_pipe import PipePeer
from waiting import until

END = frames.END_HEADERS


async def test_large_messages_pass_both_ways() -> None:
    body = bytes(range(256)) * 12_000
    async with echo_port() as (port, _, _), GrpcClient.connected(port, window=65_535) as client:
        assert await client.open("/echo/Unary", framed(body)).all() == [body]


@pytest.mark.parametrize(
    ("path", "sent", "queued", "sizes"),
    [
        ("/echo/Large", b"200000", 200_005, [200_000]),
        ("/echo/All", b"40000 100 40000", 40_005, [40_000, 100, 40_000]),
    ],
)
async def test_replies_wait_for_the_window_and_lose_nothing(
    path: str, sent: bytes, queued: int, sizes: list[int]
) -> None:
    async with echo_port() as (port, echo, server), GrpcClient.connected(port) as client:
        client.opens_windows = False
        call = client.open(path, framed(sent))
        await client.ping()
        (connection,) = server.connections
        assert connection.out.queued_bytes == queued  # a reply's bytes are kept until its last one is sent
        client.opens_windows = True
        client.h2.increment_flow_control_window(200_000)
        client.h2.increment_flow_control_window(200_000, call.id)
        client.flush()
        assert [len(message) for message in await call.all()] == sizes
        assert (connection.out.queued_bytes, echo.undelivered) == (0, 0)


@pytest.mark.parametrize("sizes", ["0", "1 2 3", "5000 0 12000 16384 1 40000", "", "70000"])
async def test_the_messages_of_a_stream_are_sent_at_once(sizes: str) -> None:
    wanted = [int(size) for size in sizes.split()]
    async with echo_port() as (port, _, _), GrpcClient.connected(port, window=65_535) as client:
        call = client.open("/echo/All", framed(sizes.encode() or b" "))
        assert [len(message) for message in await call.all()] == wanted


async def test_the_messages_of_a_stream_share_frames() -> None:
    async with echo_port() as (port, _, _), raw_peer(port) as peer:
        call = CALL.replace(b"\x0b/echo/Unary", b"\x09/echo/All")
        peer.write(PREFACE + frame(frames.HEADERS, END, 1, call))
        peer.write(frame(frames.DATA, frames.END_STREAM, 1, framed(b"10000 10 10000")))
        found = []
        while not found or not (found[-1][0] == frames.HEADERS and found[-1][1] & frames.END_STREAM):
            kind, flags, stream, payload = await peer.frame()
            if stream == 1:
                found.append((kind, flags, payload))
    data = [payload for kind, _, payload in found if kind == frames.DATA]
    assert [len(payload) for payload in data] == [16_384, 20_025 - 16_384]
    assert b"".join(data) == framed(bytes(10_000)) + framed(bytes(10)) + framed(bytes(10_000))


async def test_a_stream_without_window_does_not_hold_up_the_others() -> None:
    async with echo_port() as (port, _, _), GrpcClient.connected(port, window=10) as client:
        await client.ping()  # the server knows the window
        client.opens_windows = False
        client.h2.increment_flow_control_window(1_000_000)
        stuck = client.open("/echo/Large", framed(b"50000"))
        small = client.open("/echo/Unary", framed(b"hello"))
        assert await small.all() == [b"hello"]
        waiting = client.open("/echo/Unary", framed(b"longer than the window"))
        await client.ping()
        client.h2.increment_flow_control_window(100, waiting.id)
        client.flush()
        assert await waiting.all() == [b"longer than the window"]
        assert not stuck.is_ended


async def test_a_window_made_smaller_below_zero_opens_again() -> None:
    """RFC 9113, 6.9.2: the window of a stream may become negative."""
    async with echo_port() as (port, _, _), raw_peer(port) as peer:
        never = CALL.replace(b"\x0b/echo/Unary", b"\x0a/echo/Each")
        peer.write(PREFACE + settings({4: 100}) + frame(frames.HEADERS, END, 1, never))
        peer.write(frame(frames.DATA, 0, 1, framed(bytes(90))))
        peer.write(settings({4: 50}) + frame(frames.DATA, 0, 1, framed(bytes(20))))
        peer.write(window_update(1, 46) + frame(frames.PING, 0, 0, bytes(8)))
        sizes = []
        while True:
            kind, _, stream, payload = await peer.frame()
            if kind == frames.PING:
                break
            if (kind, stream) == (frames.DATA, 1):
                sizes.append(len(payload))
        assert sizes == [95, 1]  # 100 - 95 - 50 + 46 = 1
        peer.write(window_update(1, 24))
        while (found := await peer.frame())[0] != frames.DATA:
            pass
        assert len(found[3]) == 24


async def test_a_client_that_never_opens_its_window_is_refused_new_calls_and_closed() -> None:
    limits = Limited(unread_bytes=100_000, idle_seconds=0.4)
    async with echo_port(limits) as (port, echo, server), GrpcClient.connected(port, window=0) as client:
        await client.ping()  # the server knows the window
        client.open("/echo/Large", framed(b"150000"))
        await client.ping()
        refused = client.open("/echo/Unary", framed(b"x"))
        await client.ping()
        assert (refused.status, refused.text) == (8, "the client does not read its replies")
        await client.is_closed.wait()
        await until(lambda: not server.connections)
        assert not echo.open
        assert echo.undelivered == 1


async def test_an_idle_connection_is_told_to_go_one_with_a_call_stays() -> None:
    limits = Limited(idle_seconds=0.2)
    async with (
        echo_port(limits) as (port, _, _),
        GrpcClient.connected(port) as idle,
        GrpcClient.connected(port) as busy,
    ):
        busy.open("/echo/Never", framed(b""))
        async with asyncio.timeout(5):
            await idle.is_closed.wait()
        assert idle.goaway == (0, "idle")
        await busy.ping()


async def test_a_connection_that_never_begins_is_closed_with_the_port() -> None:
    async with echo_port() as (port, _, server):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        await server.stop()
        writer.close()


async def test_what_a_wrapper_writes_comes_after_what_was_written_before() -> None:
    """A test that cuts a reply in its middle: the replies of the same pass are sent before the half."""
    peer = PipePeer()
    peer.frames()
    peer.send(frame(frames.HEADERS, END, 1, CALL))
    peer.connection.out.in_pass = True  # as inside a pass
    peer.connection.streams[1].answer(b"first")

    def wrap(transport: asyncio.Transport) -> asyncio.Transport:
        transport.write(frame(frames.PING, 0, 0, b"the half"))
        return transport

    peer.connection.wrap_transport(wrap)
    assert [one.kind for one in peer.frames()] == [
        frames.HEADERS,
        frames.DATA,
        frames.HEADERS,
        frames.RST_STREAM,
        frames.PING,
    ]


async def test_many_calls_of_one_read_are_all_answered() -> None:
    """More than a pass handles."""
    async with echo_port() as (port, _, _), GrpcClient.connected(port) as client:
        calls = [client.open("/echo/Unary", framed(b"%d" % number)) for number in range(100)]
        assert [await call.all() for call in calls] == [[b"%d" % number] for number in range(100)]


async def test_both_sides_of_a_stream_talk_in_turn() -> None:
    async with echo_port() as (port, _, _), GrpcClient.connected(port) as client:
        call = client.open("/echo/Each")
        for number in range(3):
            call.send_bytes(framed(b"%d" % number))
            assert await call.next() == b"%d" % number
        call.half_close()
        assert await call.next() is None


async def test_the_clean_stop_lets_open_calls_end_and_refuses_new_ones() -> None:
    async with echo_port() as (port, echo, server), GrpcClient.connected(port) as client:
        held = client.open("/echo/Never", framed(b""))
        await client.ping()
        await server.stop()
        assert client.goaway == (0, "the server stops")
        assert (held.status, held.text) == (14, "stopped")
        assert not echo.open
        with pytest.raises(OSError, match=r"refused|failed"):
            await asyncio.open_connection("127.0.0.1", port)


async def test_tls_and_plain_share_the_port() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    async with (
        echo_port(tls=tls()) as (port, _, _),
        GrpcClient.connected(port) as plain,
        GrpcClient.connected(port, tls=context) as secret,
    ):
        assert secret._writer.get_extra_info("ssl_object").selected_alpn_protocol() == "h2"
        body = bytes(300_000)
        for client in (plain, secret):
            assert await client.open("/echo/Unary", framed(body)).all() == [body]


async def test_enforced_tls_closes_plain_connections() -> None:
    async with echo_port(tls=tls("enforcing")) as (port, _, _), raw_peer(port) as peer:
        peer.write(PREFACE)
        assert goaway_in(await peer.rest()) is None


def test_a_certificate_that_cannot_be_read_stops_the_start() -> None:
    with pytest.raises(StartError, match="tlsCertPath and tlsKeyPath must be set"):
        tls(tls_test_mode_enable=False).check()
    with pytest.raises(StartError, match="tlsCertPath=/no/cert, tlsKeyPath=/no/key: No such file"):
        tls(tls_cert_path="/no/cert", tls_key_path="/no/key").check()


def test_deadlines_are_read_in_every_unit() -> None:
    texts = {"3S": 3.0, "2984m": 2.984, "2798187u": 2.798187, "5n": 5e-9, "2M": 120.0, "1H": 3600.0}
    assert {text: timeout_seconds(text) for text in texts} == pytest.approx(texts)
    assert timeout_seconds("31535999M") == timeout_seconds("99999999H")


def test_texts_of_statuses_are_percent_encoded() -> None:
    assert message_text(" a b ") == b"%20a b%20"
    assert message_text("é%\n") == b"%C3%A9%25%0A"
    assert len(message_text("é" * 5000)) <= 3 * 1024
    assert message_text("\ud800") == b"?"
