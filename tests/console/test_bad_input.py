"""Bad requests: each is one clear error, nothing changes, and the broker serves on."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from pocketmq.console.guard import Guard
from pocketmq.testing import EmbeddedServer, RocketMQ
from pocketmq.testing.server.stand_in_views import MAX_STREAMS

from waiting import wait_until

from .conftest import Api


@pytest.fixture(autouse=True)
def serves_on(server: EmbeddedServer) -> Iterator[None]:
    yield
    rocketmq = RocketMQ(server)
    rocketmq.topic("alive", queues=1)
    assert rocketmq.send("alive", "still").queue_offset >= 0


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("/api/topics", {"name": "a b"}, "illegal characters"),
        ("/api/topics", {"name": ""}, "blank"),
        ("/api/topics", {"name": "T", "queues": 0}, "queues: Expected `int` >= 1"),
        ("/api/topics", {"name": "T", "queues": True}, "queues: Expected `int | null`, got `bool`"),
        ("/api/topics", {"name": "T", "order": 1}, "order: Expected `bool | null`"),
        ("/api/topics", {"name": "TBW102"}, "belongs to the broker"),
        ("/api/topics", {"name": "T", "colour": "red"}, "unknown field `colour`"),
        ("/api/topics", {}, "missing required field `name`"),
        ("/api/topics", {"name": "T", "x" * 60_000: 1}, "unknown field `xxx"),
        ("/api/faults", {"effect": "explode"}, "effect must be one of"),
        ("/api/faults", {"effect": "refuse", "code": "SEND_MESAGE"}, "did you mean"),
    ],
)
def test_a_wrong_value_is_400_and_changes_nothing(api: Api, path: str, value: Any, words: str) -> None:
    before = api.get(path)
    status, problem = api.ask("POST", path, value)
    assert status == 400
    assert words in problem["error"]
    assert len(problem["error"]) < 1000
    assert api.get(path) == before


@pytest.mark.parametrize("body", [b"{", b"[1]", b"\xff\xfe", b'"text"', b"[" * 100_000, b"nul"])
def test_a_body_that_is_no_object_is_400(api: Api, body: bytes) -> None:
    status, answer, _ = api.raw("POST", "/api/faults", body)
    assert (status, b"error" in answer) == (400, True)


@pytest.mark.parametrize(
    "query", ["queue=x", "limit=-1", "limit=1e3", f"offset={'9' * 20}", "colour=red", "queue=٣", "limit=1001"]
)
def test_a_wrong_parameter_is_400(api: Api, server: EmbeddedServer, query: str) -> None:
    RocketMQ(server).topic("orders")
    from urllib.parse import quote

    status, problem = api.ask("GET", f"/api/topics/orders/messages?{quote(query, safe='=&')}")
    assert status == 400
    assert problem["allowed"]


def test_a_body_of_100_mb_is_refused_before_it_is_read(api: Api) -> None:
    with api.open("POST /api/faults", f"Content-Length: {100 << 20}") as connection:
        assert connection.recv(1000).startswith(b"HTTP/1.1 400")


def test_a_body_without_length_is_cut_at_the_limit(api: Api) -> None:
    part = b"%x\r\n%s\r\n" % (1 << 16, b"x" * (1 << 16))
    with api.open("POST /api/faults", "Transfer-Encoding: chunked") as connection:
        try:
            for _ in range(200):
                connection.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            return
        assert connection.recv(1000).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8080"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "10.1.2.3"},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
    ],
)
@pytest.mark.parametrize("path", ["/api/topics", "/", "/metrics"])
def test_a_foreign_page_is_refused(api: Api, headers: dict[str, str], path: str) -> None:
    status, body, _ = api.raw("GET", path, headers=headers)
    assert status == 403
    assert body.startswith(b'{"error":')


def test_the_own_page_and_programs_are_let_in(api: Api) -> None:
    port = api.host.rpartition(":")[2]
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"):
        assert api.raw("GET", "/api/topics", headers={"Host": host, "Origin": f"http://{host}"})[0] == 200


@pytest.mark.parametrize(
    ("bound", "host", "allowed"),
    [
        ("127.0.0.1", "127.0.0.1:80", True),
        ("127.0.0.1", "192.168.1.5:80", False),
        ("0.0.0.0", "192.168.1.5:80", True),
        ("0.0.0.0", "evil.example", False),
        ("broker.lan", "broker.lan:8080", True),
        ("::1", "[::1]:8080", True),
        ("127.0.0.1", "LOCALHOST:8080", True),
        ("Broker.lan", "broker.LAN:8080", True),
    ],
)
def test_inside_a_network_addresses_are_own_names_are_not(bound: str, host: str, allowed: bool) -> None:
    assert (Guard(bound).refusal(host, None) is None) is allowed


def test_names_that_were_given_are_own(server: EmbeddedServer) -> None:
    with EmbeddedServer(admin_port=0, admin_host_names=["RocketMQ"], advertise="broker.lan:10911") as named:
        api = Api(named.admin_url)
        for host, status in (("rocketmq:8080", 200), ("broker.lan:8080", 200), ("other.lan:8080", 403)):
            asked = api.raw("GET", "/healthz", headers={"Host": host, "Origin": f"http://{host}"})
            assert (host, asked[0]) == (host, status)


def test_streams_are_counted(api: Api) -> None:
    with ExitStack() as streams:
        for _ in range(MAX_STREAMS):
            connection = streams.enter_context(api.open("GET /api/requests/stream"))
            assert connection.recv(20).startswith(b"HTTP/1.1 200")
        status, problem = api.ask("GET", "/api/requests/stream")
        assert (status, "streams are open" in problem["error"]) == (409, True)


def test_a_port_that_is_taken_is_one_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(Exception, match="the admin port"):
        EmbeddedServer(admin_port=taken.getsockname()[1]).start()


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/%2e%2e/app.py",
        "/..%2fapp.py",
        "/page/../app.py",
        "/./page.css/../../app.py",
        "//etc/passwd",
        "/page.css%00.html",
        "/app.py",
        "/api/topics/..%2f..%2fgroups",
        "/api/topics/orders%00",
        "/api/faults/../reset",
        "/brokers/b0/api/topics",
    ],
)
def test_a_trick_with_the_path_finds_nothing(api: Api, path: str) -> None:
    """Files are found by their names in a table, not by a path."""
    status, body, _ = api.raw("GET", path)
    assert status in (404, 405)
    assert body.startswith(b'{"error":')


def test_a_thousand_open_streams_leave_the_server_serving(api: Api, rocketmq: RocketMQ) -> None:
    """Those beyond the limit are refused; when the others end, there is room again."""
    answers = []
    with ExitStack() as streams:
        for _ in range(1000):
            try:
                connection = streams.enter_context(api.open("GET /api/requests/stream"))
                answers.append(connection.recv(12)[9:])
            except OSError:
                answers.append(b"")
        assert answers.count(b"200") == MAX_STREAMS
        assert set(answers) <= {b"200", b"409", b"503", b""}
        rocketmq.send(rocketmq.topic("orders"), "served all the same")
        assert [message.text for message in rocketmq.messages("orders")] == ["served all the same"]
    wait_until(lambda: api.raw("GET", "/healthz")[0] == 200, "the port has room again")
    wait_until(lambda: tried_stream(api), "a stream has room again")


def tried_stream(api: Api) -> bool:
    """Whether a stream is let in."""
    with api.open("GET /api/requests/stream") as connection:
        return connection.recv(12).endswith(b"200")


def test_a_reader_that_does_not_read_holds_nothing_up(api: Api, rocketmq: RocketMQ) -> None:
    """What is sent meanwhile waits in the request log only, and arrives when the reader reads."""
    topic = rocketmq.topic("orders", queues=1)
    with socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.settimeout(10)
        host, _, port = api.host.partition(":")
        reader.connect((host, int(port)))
        head = f"GET /api/requests/stream?code=SEND_MESSAGE_V2 HTTP/1.1\r\nHost: {api.host}\r\n\r\n"
        reader.sendall(head.encode())
        assert reader.recv(12).endswith(b"200")
        for number in range(40):
            rocketmq.send(topic, f"{number} " + "x" * 100_000)
        assert api.raw("GET", "/healthz")[0] == 200
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        tail = b""
        while b'"text":"39 x' not in tail:
            data = reader.recv(1 << 20)
            assert data
            tail = tail[-20:] + data
    assert [message.text[:2] for message in rocketmq.messages(topic)][:3] == ["0 ", "1 ", "2 "]


@pytest.mark.parametrize("step", [-1, "-2h", "yesterday", 1e400, None, [], "1h 2m", "٣s", True])
def test_time_is_not_moved_backwards(step: object) -> None:
    with EmbeddedServer(admin_port=0, virtual_time=True) as server:
        api, before = Api(server.admin_url), server.clock.now_ms()
        body = b'{"by": 1e400}' if step == 1e400 else json.dumps({"by": step}).encode()
        status, answer, _ = api.raw("POST", "/api/clock/advance", body)
        assert (status, b"allowed" in answer) == (400, True)
        assert server.clock.now_ms() == before


def test_the_stack_of_a_failure_is_logged_once(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("pocketmq.testing.server.stand_in_views.Clock", lambda virtual, now_ms: 1 / 0)
    for _ in range(3):
        assert api.ask("GET", "/api/clock") == (500, {"error": "ZeroDivisionError: division by zero"})
    failures = [record for record in caplog.records if record.name == "pocketmq.console"]
    assert [bool(record.exc_info) for record in failures] == [True, False, False]


@pytest.mark.parametrize("name", ["code", "response"])
def test_a_number_of_any_length_is_refused(api: Api, name: str) -> None:
    assert api.ask("GET", f"/api/requests?{name}={'9' * 5000}")[0] == 400
