"""What one connection to the port may cost the others: time, memory, a place."""

import asyncio
import http.client
import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from pocketmq.console.connections import (
    BODY_SECONDS,
    HEAD_SECONDS,
    READ_SECONDS,
    HttpConnection,
    HttpConnections,
)
from pocketmq.console.server import Console
from pocketmq.testing import EmbeddedServer
from pocketmq.testing.server.stand_in_views import StandIn

from waiting import wait_until

from .turns import MOST_SECONDS, turns_of

HALF_HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "
HALF_BODY = b"POST /api/faults HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{"


class Port:
    """A port of its own, whose connections are looked at when the test says so."""

    def __init__(self, server: EmbeddedServer) -> None:
        access = server.call(StandIn, lambda: server.node, server.watched)
        self.server = server
        self.console = Console(access)
        self.address = server.run(self.console.start("127.0.0.1", 0)).removeprefix("http://")

    @property
    def connections(self) -> HttpConnections:
        assert self.console.connections is not None
        return self.console.connections

    def connect(self, *sent: bytes) -> socket.socket:
        host, _, number = self.address.partition(":")
        connection = socket.create_connection((host, int(number)), timeout=10)
        for part in sent:
            connection.sendall(part)
        return connection

    def status(self) -> int:
        connection = http.client.HTTPConnection(self.address, timeout=10)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status
        finally:
            connection.close()

    def look_after(self, *seconds: float, only_unread: bool = False) -> list[int]:
        """Look at all connections as if so many seconds had passed since now, and so many, without a turn of the loop
        between; how many there were after each look. With `only_unread`, no look unless replies are unread."""

        async def look() -> list[int]:
            now, counts = asyncio.get_running_loop().time(), list[int]()
            is_unread = any(one.unread for one in self.connections)
            for later in seconds if is_unread or not only_unread else ():
                self.connections.look(now + later)
                counts.append(len(self.connections))
            return counts

        return self.server.run(look())


@pytest.fixture
def port() -> Iterator[Port]:
    with EmbeddedServer() as server:
        one = Port(server)
        yield one
        server.run(one.console.stop())


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """So many connections are possible."""
    monkeypatch.setattr("pocketmq.console.connections.MAX_CONNECTIONS", 20)
    return 20


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_half_heads_leave_room_for_others(port: Port, few: int, caplog: pytest.LogCaptureFixture) -> None:
    with ExitStack() as opened, caplog.at_level(logging.WARNING):
        half = [opened.enter_context(port.connect(HALF_HEAD)) for _ in range(few + 8)]
        assert port.status() == 200
        assert len(port.connections) <= few
        assert is_closed(half[0])
        assert port.status() == 200
    assert "it is idle longest" in caplog.text


def test_bodies_under_way_keep_their_place_and_a_newcomer_is_answered_503(port: Port, few: int) -> None:
    with ExitStack() as opened:
        half = [opened.enter_context(port.connect(HALF_BODY)) for _ in range(few)]
        wait_until(lambda: sum(one.is_busy for one in port.connections) == few, "all are busy")
        assert port.status() == 503
        half[0].sendall(b"x" * 999)
        assert half[0].recv(12) == b"HTTP/1.1 400"


@pytest.mark.parametrize(
    ("sent", "seconds"), [((), HEAD_SECONDS), ((HALF_HEAD,), HEAD_SECONDS), ((HALF_BODY,), BODY_SECONDS)]
)
def test_what_never_becomes_whole_is_closed(port: Port, sent: tuple[bytes, ...], seconds: float) -> None:
    with port.connect(*sent) as connection:
        wait_until(lambda: len(port.connections) == 1, "the connection")
        wait_until(lambda: any(one.is_busy for one in port.connections) == (seconds == BODY_SECONDS), "it")
        port.look_after(seconds - 1)
        assert len(port.connections) == 1
        port.look_after(seconds + 1)
        assert is_closed(connection)
        assert len(port.connections) == 0


def test_a_body_that_arrives_steadily_may_take_longer(port: Port) -> None:
    with port.connect(HALF_BODY.replace(b"1000", b"4000000"), b" " * 3_000_000) as connection:
        wait_until(lambda: any(one._received > 2_500_000 for one in port.connections), "most of the body")
        port.look_after(BODY_SECONDS + 100)
        connection.sendall(b" " * 999_999)
        assert connection.recv(12) == b"HTTP/1.1 400"


def test_a_client_that_reads_no_reply_is_closed(port: Port) -> None:
    with socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        host, _, number = port.address.partition(":")
        reader.connect((host, int(number)))
        for _ in range(2000):
            reader.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        # The system takes more of it now and then, which counts as reading: the three looks are at one moment.
        looks = (0, READ_SECONDS - 1, READ_SECONDS + 1)
        wait_until(
            lambda: port.look_after(*looks, only_unread=True) == [1, 1, 0],
            "the connection is closed, and not before",
        )


@pytest.mark.parametrize(
    ("unread", "is_late"),
    [((100, 100, 100), True), ((100, 200, 300), True), ((100, 200, 150), False), ((0, 0, 100), False)],
    ids=["nothing moves", "only we write", "the client reads", "a reply begins"],
)
def test_only_a_client_that_reads_may_take_its_time(
    port: Port, monkeypatch: pytest.MonkeyPatch, unread: tuple[int, ...], is_late: bool
) -> None:
    with port.connect(HALF_BODY):
        wait_until(lambda: any(one.is_busy for one in port.connections), "half a body")
        (one,) = port.connections

        async def reason() -> str | None:
            began, found = one.since, None
            for size, later in zip(unread, (0, READ_SECONDS / 2, READ_SECONDS + 1), strict=True):
                monkeypatch.setattr(HttpConnection, "unread", property(lambda self, size=size: size))
                found = one.lateness(began + later)
            return found

        found = port.server.run(reason())
        monkeypatch.undo()
    assert (found == "its client reads no replies") is is_late


@pytest.mark.parametrize(
    ("head", "part"),
    [
        (
            b"POST /api/faults HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"1\r\n \r\n",
        ),
        (b"", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
        (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"a:b\r\n"),
    ],
    ids=["chunks", "pipelined", "headers"],
)
def test_many_small_parts_do_not_hold_the_loop(port: Port, head: bytes, part: bytes) -> None:
    """200,000 bytes of them; the judge is the loop's processor time in a turn."""
    with turns_of(port.server) as turns, port.connect() as connection:
        try:
            connection.sendall(head + part * (200_000 // len(part)))
            connection.settimeout(0.5)
            while connection.recv(1 << 20):
                pass
        except (TimeoutError, ConnectionError):
            pass
    assert turns.longest < MOST_SECONDS


def test_a_head_is_limited(port: Port) -> None:
    with port.connect(b"GET /healthz HTTP/1.1\r\n" + b"X: " + b"x" * 40_000 + b"\r\n\r\n") as connection:
        assert connection.recv(12) == b"HTTP/1.1 400"
