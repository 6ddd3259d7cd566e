"""A few lines of the remoting protocol, for requests of the tests themselves: JSON headers, blocking sockets.

Not PocketMQ's codec, on purpose: a mistake there must not hide behind the same mistake here.

    int32 length | int32 header length (high byte 0 = JSON) | header JSON | body
"""

import itertools
import json
import socket
import struct
from dataclasses import dataclass, field

WORDS = struct.Struct(">iI")
_opaques = itertools.count(1)


@dataclass(frozen=True)
class Reply:
    """Response code, remark, header fields (all strings) and body of one answer."""

    code: int
    remark: str
    fields: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    def json(self) -> object:
        return json.loads(self.body)


def encode(header: dict[str, object], body: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return WORDS.pack(4 + len(text) + len(body), len(text)) + text + body


def read_exactly(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        chunk = connection.recv(size - len(parts))
        if not chunk:
            raise ConnectionError(f"closed after {len(parts)} of {size} bytes")
        parts += chunk
    return bytes(parts)


def read_frame(connection: socket.socket) -> tuple[dict[str, object], bytes]:
    """(header, body) of the next frame; JSON headers only."""
    length, word = WORDS.unpack(read_exactly(connection, WORDS.size))
    rest = read_exactly(connection, length - 4)
    size = word & 0xFFFFFF
    return json.loads(rest[:size]), rest[size:]


def call(
    connection: socket.socket,
    code: int,
    fields: dict[str, object] | None = None,
    body: bytes = b"",
    version: int = 0,
) -> Reply:
    """One request and its answer; other frames (server pushes) are skipped."""
    opaque = next(_opaques)
    texts = {name: _text(value) for name, value in (fields or {}).items()}
    header: dict[str, object] = {"code": code, "flag": 0, "language": "JAVA", "opaque": opaque}
    header |= {"version": version, "serializeTypeCurrentRPC": "JSON", "extFields": texts}
    connection.sendall(encode(header, body))
    while True:
        answer, answer_body = read_frame(connection)
        flag = answer["flag"]
        assert isinstance(flag, int)
        if answer["opaque"] == opaque and flag & 1:
            break
    answered = answer["code"]
    extra = answer.get("extFields") or {}
    assert isinstance(answered, int)
    assert isinstance(extra, dict)
    return Reply(answered, str(answer.get("remark") or ""), extra, answer_body)


def _text(value: object) -> str:
    """Header values as Java writes them."""
    return str(value).lower() if isinstance(value, bool) else str(value)
