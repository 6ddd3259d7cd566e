"""A server with the HTTP port, and a client of the standard library."""

import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from pocketmq.testing import EmbeddedServer, RocketMQ


class Api:
    """Asks the port; each call is one connection."""

    def __init__(self, url: str) -> None:
        self.host = url.removeprefix("http://")

    def raw(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes, dict[str, str]]:
        connection = http.client.HTTPConnection(self.host, timeout=10)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read(), dict(answer.getheaders())
        finally:
            connection.close()

    def open(self, request: str, *headers: str) -> socket.socket:
        """A connection on which a request was sent: `GET /path`."""
        host, _, port = self.host.partition(":")
        connection = socket.create_connection((host, int(port)), timeout=10)
        head = "".join(f"{line}\r\n" for line in (f"{request} HTTP/1.1", f"Host: {self.host}", *headers))
        connection.sendall(f"{head}\r\n".encode())
        return connection

    def ask(self, method: str, path: str, value: Any = None) -> tuple[int, Any]:
        status, body, _ = self.raw(method, path, None if value is None else json.dumps(value).encode())
        return status, json.loads(body)

    def get(self, path: str) -> Any:
        status, value = self.ask("GET", path)
        assert status == 200, value
        return value

    def post(self, path: str, value: Any) -> Any:
        status, answer = self.ask("POST", path, value)
        assert status in (200, 201), answer
        return answer


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(admin_port=0) as one:
        yield one


@pytest.fixture
def api(server: EmbeddedServer) -> Iterator[Api]:
    yield Api(server.admin_url)
    server.faults.clear()
    server.requests.clear()
    server.reset()


@pytest.fixture
def rocketmq(server: EmbeddedServer) -> RocketMQ:
    return RocketMQ(server)
