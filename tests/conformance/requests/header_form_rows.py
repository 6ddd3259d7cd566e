"""Requests with a binary header: replies, late replies and notices have a header form of their line.

Each is for one way in which a server makes its reply. Official 4.9.7 replies in the form of the request, but in JSON if
the handler failed or a pull was suspended. Official 5.5.0 replies in JSON always.
"""

import contextlib
import socket
import time
from collections.abc import Callable

from conformance.requests.transcripts import Transcript
from conformance.servers import raw_client
from conformance.servers.raw_client import RawClient
from conformance.servers.remoting import Header, binary_request, read_header, read_whole
from conformance.servers.server import BROKER_PORT, NAME_SERVER_PORT, Server

TOPIC = "forms"
WAIT_S = 25.0
Fields = dict[str, object]


def send_fields(**changes: object) -> Fields:
    return raw_client.send_fields("forms", TOPIC, **changes)


def pull_fields(**changes: object) -> Fields:
    return raw_client.pull_fields("forms", TOPIC, **changes)


def heartbeat(client: str) -> bytes:
    subscription = {"topic": TOPIC, "subString": "*", "subVersion": 1, "expressionType": "TAG"}
    return raw_client.heartbeat(client, "forms", {**subscription, "codeSet": [], "tagsSet": []})


BROKER_ROWS: list[tuple[str, int, Fields, bytes]] = [
    ("send", 10, send_fields(), b"x"),
    ("send to a topic that cannot be made", 10, send_fields(topic="a b"), b"x"),
    ("pull", 11, pull_fields(), b""),
    ("pull beyond the end", 11, pull_fields(queueOffset=1000), b""),
    ("pull of no topic", 11, pull_fields(topic="none"), b""),
    ("pull with a wrong number", 11, pull_fields(queueOffset="x"), b""),
    ("no offset", 14, {"consumerGroup": "nobody", "topic": TOPIC, "queueId": 0}, b""),
    ("offset", 30, {"topic": TOPIC, "queueId": 0}, b""),
    ("offset without a topic", 30, {}, b""),
    ("settings", 26, {}, b""),
    ("unreadable settings", 25, {}, b"a=\\u00zz"),
    ("refused settings", 25, {}, b"configBlackList=x"),
    ("unreadable heartbeat", 34, {}, b"{"),
    ("consumers of no group", 38, {"consumerGroup": "nobody"}, b""),
    ("message that does not exist", 33, {"offset": 99_999_999}, b""),
    ("code without a handler", 9999, {}, b""),
    ("running info of no client", 307, {"consumerGroup": "nobody", "clientId": "nobody"}, b""),
]
NAME_SERVER_ROWS: list[tuple[str, int, Fields, bytes]] = [
    ("route", 105, {"topic": TOPIC}, b""),
    ("route of no topic", 105, {"topic": "none"}, b""),
    ("cluster", 106, {}, b""),
    ("topics", 206, {}, b""),
    ("no value", 101, {"namespace": "n", "key": "k"}, b""),
    ("refused settings", 318, {}, b"kvConfigPath=x"),
]


class HeaderForms(Transcript):
    """The form and code of each reply; then the late replies, and what the server sends itself.

    Left out: the answer to a request that was relayed to a client (5.5.0 passes on the client's header form, ours does
    not).
    """

    def play(self, server: Server) -> list[str]:
        self.before_start(server)
        with server:
            if self.settings:  # it requires an access key
                return [_row(server, BROKER_PORT, *BROKER_ROWS[0])]
            with RawClient(server) as client:
                client.update_topic(TOPIC, 1)
                client.fill(TOPIC, [0], 1)
            rows = [_row(server, BROKER_PORT, *row) for row in BROKER_ROWS]
            rows += [_row(server, NAME_SERVER_PORT, *row) for row in NAME_SERVER_ROWS]
            rows.append(_suspended(server, "suspended until a message arrives", 15_000, send_after=True))
            rows.append(_suspended(server, "suspended until it is too late", 1000, send_after=False))
            rows.append(_notice(server))
            return rows


def _row(server: Server, port: int, name: str, code: int, fields: Fields, body: bytes) -> str:
    with server.connect(port, timeout=WAIT_S) as connection:
        connection.sendall(binary_request(code, 1, fields, body))
        return f"{name}: {_first(connection, lambda frame: frame.opaque == 1 and frame.is_response)}"


def _suspended(server: Server, name: str, wait_ms: int, *, send_after: bool) -> str:
    with server.connect(BROKER_PORT, timeout=WAIT_S) as connection, RawClient(server) as client:
        end = client.max_offset(TOPIC, 0)
        fields = pull_fields(queueOffset=end, sysFlag=6, suspendTimeoutMillis=wait_ms)
        connection.sendall(binary_request(11, 1, fields))
        if send_after:
            time.sleep(1)  # the pull must be suspended first
            client.send(TOPIC, 0, b"late")
        return f"{name}: {_first(connection, lambda frame: frame.is_response)}"


def _notice(server: Server) -> str:
    with server.connect(BROKER_PORT, timeout=WAIT_S) as first:
        first.sendall(binary_request(34, 1, {}, heartbeat("first")))
        reply = _first(first, lambda frame: frame.is_response)
        with server.connect(BROKER_PORT, timeout=WAIT_S) as second:
            second.sendall(binary_request(34, 1, {}, heartbeat("second")))
            return f"heartbeat: {reply}; notice to it: {_first(first, lambda frame: not frame.is_response)}"


def _first(connection: socket.socket, is_it: Callable[[Header], bool]) -> str:
    with contextlib.suppress(TimeoutError, ConnectionError):
        while True:
            frame = read_header(read_whole(connection))
            if is_it(frame):
                return f"code {frame.code}, form {frame.form}"
    return "nothing"
