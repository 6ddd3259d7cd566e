"""The PROXY protocol, version 1 and 2: a load balancer says which client it speaks for."""

import asyncio
import logging
import socket
import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.grpc_endpoint.http2.certificates import Certificates, GrpcTls
from pocketmq.grpc_endpoint.http2.frames import PREFACE, settings
from pocketmq.grpc_endpoint.http2.proxy_preamble import (
    NONE,
    SIGNATURE,
    MalformedPreamble,
    Preamble,
    read_preamble,
)

from grpc_client import GrpcClient, framed
from http2_echo import echo_port, goaway_in, raw_peer

LINE = b"PROXY TCP4 192.0.2.7 198.51.100.1 56324 8081\r\n"
PORTS = (56324).to_bytes(2) + (8081).to_bytes(2)
V4 = socket.inet_aton("192.0.2.7") + socket.inet_aton("198.51.100.1") + PORTS
V6 = socket.inet_pton(socket.AF_INET6, "2001:db8::7") + socket.inet_pton(socket.AF_INET6, "::1") + PORTS


def binary(rest: bytes, *, command: int = 0x21, kind: int = 0x11, size: int | None = None) -> bytes:
    return SIGNATURE + bytes((command, kind)) + (len(rest) if size is None else size).to_bytes(2) + rest


CLIENT = ("192.0.2.7", 56324)
EXTENSION = b"\xe0\x00\x03abc"
READ: list[tuple[str, bytes, tuple[str, int] | None]] = [
    ("1", LINE, CLIENT),
    ("1, IPv6", b"PROXY TCP6 2001:db8::7 ::1 56324 8081\r\n", ("2001:db8::7", 56324)),
    ("1, unknown", b"PROXY UNKNOWN\r\n", None),
    ("1, unknown with words", b"PROXY UNKNOWN a b c d\r\n", None),
    ("2", binary(V4), CLIENT),
    ("2, IPv6", binary(V6, kind=0x21), ("2001:db8::7", 56324)),
    ("2, with extensions", binary(V4 + EXTENSION), CLIENT),
    ("2, local", binary(b"", command=0x20, kind=0), None),
    ("2, local with addresses", binary(V4, command=0x20), None),
    ("2, unknown family", binary(b"", kind=0), None),
    ("2, a path", binary(bytes(216), kind=0x31), None),
]


@pytest.mark.parametrize(("data", "source"), [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_a_preamble_is_read_whole_and_byte_by_byte(data: bytes, source: tuple[str, int] | None) -> None:
    assert read_preamble(data + PREFACE) == Preamble(len(data), source)
    for end in range(len(data)):
        assert read_preamble(data[:end]) is None


MALFORMED: list[tuple[str, bytes]] = [
    ("another family", b"PROXY UDP4 192.0.2.7 198.51.100.1 1 2\r\n"),
    ("no words", b"PROXY \r\n"),
    ("too few words", b"PROXY TCP4 192.0.2.7 198.51.100.1 1\r\n"),
    ("too many words", b"PROXY TCP4 192.0.2.7 198.51.100.1 1 2 3\r\n"),
    ("no address", b"PROXY TCP4 192.0.2.x 198.51.100.1 1 2\r\n"),
    ("an address of the other family", b"PROXY TCP4 ::1 ::1 1 2\r\n"),
    ("a port beyond 65535", b"PROXY TCP4 192.0.2.7 198.51.100.1 65536 2\r\n"),
    ("a port that is no number", b"PROXY TCP4 192.0.2.7 198.51.100.1 -1 2\r\n"),
    ("an address that is no text", b"PROXY TCP4 \xff 198.51.100.1 1 2\r\n"),
    ("a line without end", b"PROXY TCP4 " + b"1" * 200),
    ("version 1 in binary", binary(V4, command=0x11)),
    ("an unknown command", binary(V4, command=0x22)),
    ("addresses cut", binary(V4[:11])),
    ("addresses of IPv6 cut", binary(V4, kind=0x21)),
]


@pytest.mark.parametrize("data", [row[1] for row in MALFORMED], ids=[row[0] for row in MALFORMED])
async def test_a_malformed_preamble_closes_its_connection_with_one_line(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(MalformedPreamble):
        read_preamble(data)
    with caplog.at_level(logging.WARNING, "pocketmq.grpc"):
        async with echo_port() as (port, _, _), GrpcClient.connected(port) as other:
            async with raw_peer(port) as peer:
                peer.write(data)
                assert await peer.rest() == b""
            assert await other.open("/echo/Unary", framed(b"x")).all() == [b"x"]
    assert len(caplog.records) == 1
    assert "a PROXY preamble with" in caplog.text


@given(st.binary(max_size=300))
def test_other_bytes_are_no_preamble(data: bytes) -> None:
    """What is decided stays decided: more bytes do not change it."""
    for first in (data, b"PROXY " + data, SIGNATURE + data):
        try:
            found = read_preamble(first)
        except MalformedPreamble:
            continue
        assert found is None or found == NONE or found.length <= len(first)
        if found is not None:
            assert read_preamble(first + b"x") == found


@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize(
    "preamble", [LINE, binary(V4 + EXTENSION), b"PROXY UNKNOWN\r\n"], ids=["1", "2", "none"]
)
async def test_the_clients_address_is_the_one_of_the_preamble(preamble: bytes, is_tls: bool) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    async with echo_port(tls=GrpcTls(Certificates())) as (port, _, server):
        with socket.create_connection(("127.0.0.1", port)) as below:
            below.sendall(preamble)
            async with GrpcClient.connected(below, tls=context if is_tls else None) as client:
                assert await client.open("/echo/Unary", framed(b"x")).all() == [b"x"]
                (connection,) = server.connections
                own = "{}:{}".format(*below.getsockname()) if below.fileno() >= 0 else connection.peer
                expected = own if preamble.startswith(b"PROXY UNK") else "192.0.2.7:56324"
                assert connection.peer == expected
                if expected != own:
                    assert connection.packed_host == socket.inet_aton("192.0.2.7") + (56324).to_bytes(4)


async def test_a_preamble_and_a_preface_may_arrive_byte_by_byte() -> None:
    async with echo_port() as (port, _, server), raw_peer(port) as peer:
        for byte in LINE + PREFACE + settings({}):
            peer.write(bytes((byte,)))
            await asyncio.sleep(0)
        assert (await peer.frame())[0] == 4  # SETTINGS
        assert [connection.peer for connection in server.connections] == ["192.0.2.7:56324"]


async def test_a_second_preamble_is_no_http() -> None:
    async with echo_port() as (port, _, _), raw_peer(port) as peer:
        peer.write(LINE + LINE + PREFACE)
        assert goaway_in(await peer.rest()) is None


async def test_the_port_closes_connections_that_stop_inside_a_preamble() -> None:
    async with echo_port() as (port, _, server), raw_peer(port) as peer:
        peer.write(LINE[:20])
        async with asyncio.timeout(5):
            while not server._waiting:  # noqa: ASYNC110 - the system delivers it
                await asyncio.sleep(0.001)
        await server.stop()
        assert await peer.rest() == b""
        assert not server._waiting
