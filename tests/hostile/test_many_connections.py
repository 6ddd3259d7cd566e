"""What many connections, or large logs of requests, cost: the HTTP port and the HA port. The bounds are in
`docs/architecture.md`, "Bounds".
"""

import contextlib
import http.client
import json
import random
import signal
import socket
import ssl
import struct
import zlib
from collections.abc import Callable, Iterator

import pytest

from hostile.http_rows import request_of
from hostile.judge import ANSWER_SECONDS, GOOD_TOPIC, MIB, Attack, Judge, Limits
from raw_peer import (
    GET_MAX_OFFSET,
    ONEWAY,
    PULL_MESSAGE,
    SEND_MESSAGE,
    SUCCESS,
    pull_fields,
    request,
    send_fields,
)

LIMITS = Limits()
GET_TOPICS = b"GET /api/topics HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /api/faults HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n"
CHUNKED = b"POST /api/faults HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
UPDATE_CONSUMER_OFFSET = 15
MARK = "?????"
MEMBERS = 800
PAGE = LIMITS._replace(memory_bytes=12 * MIB)
"""A page of a list has 1 MiB, or one message; with what it is made of."""


def connected(judge: Judge, port: str, count: int, data: bytes) -> Callable[[], None]:
    """So many at once; each sends these bytes and reads nothing. Then all of them close together."""

    def act() -> None:
        with contextlib.ExitStack() as stack:
            for _ in range(count):
                address = ("127.0.0.1", judge.ports[port])
                peer = stack.enter_context(socket.create_connection(address, ANSWER_SECONDS))
                with contextlib.suppress(ConnectionError):  # one too many
                    peer.sendall(data)
            judge.settle()

    return act


def assert_many_are_cheap(judge: Judge, port: str, count: int, data: bytes) -> None:
    """A connection counts as 4 KiB: that is what its buffers take."""
    sent_bytes = count * max(len(data), 4096)
    assert judge.over_while(LIMITS, connected(judge, port, count, data), sent_bytes, count) == []


# -- HTTP


@pytest.mark.parametrize("what", ["heads", "bodies", "silent"])
def test_half_requests_on_more_connections_than_there_may_be_are_cheap(judge: Judge, what: str) -> None:
    data = {"heads": GET_TOPICS[:-2], "bodies": POST + b"{" * 1000, "silent": b""}[what]
    assert_many_are_cheap(judge, "http", 520, data)
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", judge.ports["http"])) as other:
        other.request("GET", "/healthz")
        assert other.getresponse().status == 200


def test_a_body_in_chunks_of_a_byte_is_cheap(judge: Judge) -> None:
    assert (
        judge.over(LIMITS, Attack("http", CHUNKED + b"1\r\n \r\n" * 60_000 + b"0\r\n\r\n", closes=True)) == []
    )


@pytest.mark.parametrize("path", ["/healthz", "/openapi.json", "/metrics", "/api/topics?all=true"])
def test_pipelined_requests_whose_answers_are_not_read_are_cheap(judge: Judge, path: str) -> None:
    one = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()

    def act() -> None:
        with socket.socket() as peer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            peer.connect(("127.0.0.1", judge.ports["http"]))
            peer.settimeout(0.3)
            with contextlib.suppress(TimeoutError):
                peer.sendall(one * 2000)
            judge.settle()

    assert judge.over_while(LIMITS, act, 2000 * len(one), requests=2000) == []


@pytest.mark.parametrize("encoding", ["deflate", "gzip"])
def test_a_bomb_is_not_inflated(judge: Judge, encoding: str) -> None:
    compressor = zlib.compressobj(wbits=31 if encoding == "gzip" else 15)
    bomb = b"".join(compressor.compress(bytes(MIB)) for _ in range(40)) + compressor.flush()
    for method, path in (("PUT", "/api/snapshot"), ("POST", f"/api/topics/{GOOD_TOPIC}/messages")):
        data = request_of(method, path, bomb, headers=f"Content-Encoding: {encoding}\r\n")
        assert judge.over(LIMITS, Attack("http", data)) == []


def test_a_stored_bomb_is_shown_without_being_inflated_whole(judge: Judge) -> None:
    """A message whose body says that it is compressed, 64 MiB of zeros."""
    bomb = zlib.compress(bytes(64 * MIB), 9)
    with judge.server.broker() as peer:
        fields = send_fields("Bomb", sysFlag="1")
        assert peer.call(SEND_MESSAGE, fields, bomb).code == SUCCESS
    for path in ("/api/topics/Bomb/messages", "/api/topics/Bomb/messages?limit=1"):
        assert judge.over(PAGE, Attack("http", request_of("GET", path))) == []


@pytest.fixture(scope="module")
def busy(judge: Judge) -> Judge:
    """60,000 requests in the log, and 20 groups with 3,000 messages each in the ledger."""
    send = request(SEND_MESSAGE, send_fields("Busy", properties=f"UNIQ_KEY\x01{MARK}\x02"), b"x", flag=ONEWAY)
    with judge.server.broker(timeout=60) as peer:
        for number in range(3000):
            peer.say(send.replace(MARK.encode(), b"%05d" % number))
        for group in range(20):
            name = f"g{group:02}"
            fields = {"topic": "Busy", "consumerGroup": name, "queueId": 0, "commitOffset": 0}
            peer.call(PULL_MESSAGE, pull_fields("Busy", consumerGroup=name, maxMsgNums=1))
            peer.call(UPDATE_CONSUMER_OFFSET, fields)
            peer.call(UPDATE_CONSUMER_OFFSET, {**fields, "commitOffset": 2000})
        beat = request(34, {}, b"", flag=ONEWAY)
        for _ in range(60):
            peer.say(beat * 1000)
        peer.call(34)
    return judge


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        *(
            "/api/requests",
            "/api/requests?limit=10000",
            "/api/requests?topic=none",
            "/api/requests?last=10000",
        ),
        *("/api/ledger", "/api/ledger?limit=10000", "/api/ledger?topic=Busy&group=g07"),
        *("/api/ledger?message=02999", "/metrics"),
    ],
)
def test_a_page_of_a_full_log_is_cheap(busy: Judge, path: str) -> None:
    assert busy.over(PAGE, Attack("http", request_of("GET", path))) == []


# -- remoting


@pytest.mark.slow
def test_many_members_that_leave_together_are_cheap(judge: Judge) -> None:
    """The server finds all of their ends at once: it is stopped while they close."""
    subscription = {"topic": GOOD_TOPIC, "subString": "*", "expressionType": "TAG", "subVersion": 1}
    consumer = {"consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING"}
    consumer |= {"consumeFromWhere": "CONSUME_FROM_LAST_OFFSET", "subscriptionDataSet": [subscription]}

    def act() -> None:
        with contextlib.ExitStack() as stack:
            for number in range(MEMBERS):
                peer = stack.enter_context(judge.server.broker(timeout=ANSWER_SECONDS))
                member = {**consumer, "groupName": f"crowd{number // 10}"}  # each hears of all others in it
                beat = {"clientID": f"c{number}", "consumerDataSet": [member]}
                peer.say(request(34, {}, json.dumps(beat).encode()))
            judge.settle()
            judge.server.process.send_signal(signal.SIGSTOP)
        judge.server.process.send_signal(signal.SIGCONT)
        judge.settle()

    assert judge.over_while(LIMITS, act, MEMBERS * 4096, MEMBERS) == []


# -- TLS


def client_hello() -> bytes:
    """What a client of TLS sends first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing).do_handshake()
    return outgoing.read()


HELLO = client_hello()
TLS_ROWS = {
    "a whole first message": HELLO,
    "half of the first message": HELLO[: len(HELLO) // 2],
    "one byte": HELLO[:1],
    "the first message twice": HELLO * 2,
    "garbage of 64 KiB": HELLO[:1] + random.Random(2).randbytes(1 << 16),
    "records of no bytes": b"\x16\x03\x01\x00\x00" * 10_000,
    "the longest first message": b"\x16\x03\x01\x40\x00\x01\x00\xff\xff" + bytes(16_380),
}
HANDSHAKES = LIMITS._replace(memory_factor=12)
"""Of 4 KiB a connection: the library keeps 40 KiB for each."""


@pytest.mark.parametrize(
    "what",
    [pytest.param(what, marks=[] if data is HELLO else pytest.mark.slow) for what, data in TLS_ROWS.items()],
)
@pytest.mark.parametrize("port", ["broker", "namesrv", "grpc"])
def test_handshakes_that_arrive_together_and_never_end_are_cheap(judge: Judge, port: str, what: str) -> None:
    """300 of them: the server finds their bytes all at once, and serves others meanwhile."""
    count, data = 300, TLS_ROWS[what]

    def act() -> None:
        with contextlib.ExitStack() as stack:
            peers = [
                stack.enter_context(
                    socket.create_connection(("127.0.0.1", judge.ports[port]), ANSWER_SECONDS)
                )
                for _ in range(count)
            ]
            judge.settle()
            judge.server.process.send_signal(signal.SIGSTOP)
            for peer in peers:
                peer.sendall(data)
            judge.server.process.send_signal(signal.SIGCONT)
            judge.settle()

    assert judge.over_while(HANDSHAKES, act, count * max(len(data), 4096), count) == []


# -- HA


def number(value: int) -> bytes:
    return struct.pack(">q", value)


HA_ROWS = {
    "nothing": b"",
    "garbage": random.Random(1).randbytes(MIB),
    "half a number": bytes(4),
    "a huge offset": number(2**63 - 1),
    "a negative offset": number(-1),
    "the most negative offset": number(-(2**63)),
    "an offset in the log": number(1),
    "a number ahead, then one behind": number(2**62) + number(0),
    "130,000 numbers": number(0) * 131_072,
    "130,000 different numbers": b"".join(map(number, range(131_072))),
    "a web browser": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000,
}


@pytest.mark.parametrize("what", HA_ROWS)
def test_no_slave_costs_more_than_it_is_worth(judge: Judge, what: str) -> None:
    assert judge.over(LIMITS, Attack("ha", HA_ROWS[what], closes=True)) == []


def test_a_slave_that_does_not_read_costs_no_more_than_its_share(judge: Judge) -> None:
    """32 of them; each may leave 4 MiB unread, and gets no more."""
    with judge.server.broker() as peer:
        for _ in range(12):
            assert peer.call(SEND_MESSAGE, send_fields("Long"), bytes(MIB)).code == SUCCESS
    unread = LIMITS._replace(memory_bytes=32 * 5 * MIB)
    assert judge.over_while(unread, connected(judge, "ha", 40, number(0)), 40 * 8, 40) == []


def test_a_flood_of_slaves_is_cheap(judge: Judge) -> None:
    assert_many_are_cheap(judge, "ha", 400, b"")
    assert_many_are_cheap(judge, "ha", 400, bytes(4))


def test_a_slave_that_is_gone_before_it_is_accepted_surprises_nobody(judge: Judge) -> None:
    """Its socket has no address any more. The server is stopped while it connects and resets."""
    with judge.server.no_surprise():
        judge.server.process.send_signal(signal.SIGSTOP)
        for _ in range(20):
            peer = socket.create_connection(("127.0.0.1", judge.ports["ha"]), ANSWER_SECONDS)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.close()
        judge.server.process.send_signal(signal.SIGCONT)
        judge.settle()


USER = '{"username":"admin","password":"12345678"}'


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """With access control, except for what the good client does; the HA port was not asked for: it serves nobody."""
    settings = [
        "authenticationEnabled=true",
        f"initAuthenticationUser={USER}",
        f"authenticationWhitelist={SEND_MESSAGE},{GET_MAX_OFFSET}",
    ]
    with Judge(tmp_path_factory.mktemp("guarded"), settings, ["--open-admin-port"]) as judge:
        yield judge


@pytest.mark.parametrize("what", HA_ROWS)
def test_no_refused_slave_costs_more_than_it_is_worth(guarded: Judge, what: str) -> None:
    assert guarded.over(LIMITS, Attack("ha", HA_ROWS[what], closes=True)) == []
    address = ("127.0.0.1", guarded.ports["ha"])
    with socket.create_connection(address, ANSWER_SECONDS) as peer, contextlib.suppress(ConnectionError):
        peer.sendall(number(0))
        assert peer.recv(1) == b""


def test_a_flood_of_refused_slaves_is_cheap_and_logged_once(guarded: Judge) -> None:
    assert_many_are_cheap(guarded, "ha", 400, number(0))
    assert guarded.server.errors.count("HA port") == 1
