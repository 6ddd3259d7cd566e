"""The PROXY protocol before a connection's first bytes: both sides take the client's address from it."""

import socket

import pytest
from pocketmq.grpc_endpoint.messages import Code

from conformance.grpc.announcing import new_id
from conformance.grpc.conftest import GRPC_PORT
from conformance.grpc.rows import message, send
from conformance.grpc.test_sends import stored
from conformance.servers.server import Server
from grpc_client import GrpcClient

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
ADDRESSES = socket.inet_aton("192.0.2.7") + socket.inet_aton("198.51.100.1")
V4 = ADDRESSES + (56324).to_bytes(2) + (8081).to_bytes(2)


def binary(rest: bytes, command: int = 0x21, kind: int = 0x11) -> bytes:
    return SIGNATURE + bytes((command, kind)) + len(rest).to_bytes(2) + rest


ROWS: list[tuple[str, bytes, str | None]] = [
    ("1", b"PROXY TCP4 192.0.2.7 198.51.100.1 56324 8081\r\n", "192.0.2.7:56324"),
    ("1, unknown", b"PROXY UNKNOWN\r\n", None),
    ("2", binary(V4), "192.0.2.7:56324"),
    ("2, extensions", binary(V4 + b"\xe0\x00\x03abc"), "192.0.2.7:56324"),
    ("2, local", binary(b"", 0x20, 0), None),
    ("2, a path", binary(bytes(216), kind=0x31), None),
]


@pytest.mark.parametrize(("preamble", "source"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
async def test_address_of_a_preamble_is_stored(side: Server, preamble: bytes, source: str | None) -> None:
    with side.connect(GRPC_PORT) as below:
        below.sendall(preamble)
        own = "{}:{}".format(*below.getsockname())
        async with GrpcClient.connected(below) as client:
            request = send(message("OneT", message_id=new_id(), born_host=""))
            reply = await client.ask(request, seconds=20)
            assert reply.status.code == Code.OK
    text = stored(side, "OneT", 0, reply.entries[0].offset)
    assert f"__BORNHOST={source or own};" in text


@pytest.mark.parametrize(
    "preamble",
    [
        b"PROXY TCP4 192.0.2.7\r\n",
        b"PROXY TCP4 192.0.2.x 198.51.100.1 1 2\r\n",
        b"PROXY TCP4 192.0.2.7 198.51.100.1 1 65536\r\n",
        b"PROXY TCP4 " + b"1" * 200,
        binary(V4[:11]),
        binary(V4, command=0x22),
    ],
    ids=["cut", "no address", "no port", "too long", "addresses cut", "unknown command"],
)
def test_malformed_preamble_closes_the_connection(side: Server, preamble: bytes) -> None:
    with side.connect(GRPC_PORT) as below:
        below.settimeout(20)
        below.sendall(preamble)
        try:
            assert below.recv(100) == b""
        except ConnectionResetError:
            pass
