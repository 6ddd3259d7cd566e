"""A few lines of the remoting protocol, for requests of the tests themselves: blocking sockets.

Not PocketMQ's codec, on purpose: a mistake there must not hide behind the same mistake here.

    int32 length | int8 form (0 JSON, 1 binary), int24 header length | header | body
    binary header: int16 code | int8 language | int16 version | int32 opaque | int32 flag
                   | int32 + remark | int32 size of fields | (int16 + key, int32 + value)*
"""

import itertools
import json
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from raw_peer import WORDS, request, texts
from raw_peer import Reply as Reply

JSON, BINARY = 0, 1
RESPONSE_FLAG = 1
BINARY_HEAD = struct.Struct(">hBhii")
_opaques = itertools.count(1)


def read_exactly(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        chunk = connection.recv(size - len(parts))
        if not chunk:
            raise ConnectionError(f"closed after {len(parts)} of {size} bytes")
        parts += chunk
    return bytes(parts)


def read_whole(connection: socket.socket) -> bytes:
    """The bytes of the next frame."""
    length = read_exactly(connection, 4)
    return length + read_exactly(connection, int.from_bytes(length, "big"))


def read_frame(connection: socket.socket) -> tuple[dict[str, Any], bytes]:
    """(header, body) of the next frame; JSON headers only."""
    frame = read_whole(connection)
    end = WORDS.size + (WORDS.unpack_from(frame)[1] & 0xFFFFFF)
    return json.loads(frame[WORDS.size : end]), frame[end:]


def call(
    connection: socket.socket,
    code: int,
    fields: Mapping[str, object] | None = None,
    body: bytes = b"",
    version: int = 0,
) -> Reply:
    """One request and its answer; other frames (server pushes) are skipped."""
    opaque = next(_opaques)
    connection.sendall(
        request(code, texts(fields), body, opaque=opaque, version=version, serializeTypeCurrentRPC="JSON")
    )
    while True:
        answer, answer_body = read_frame(connection)
        if answer["opaque"] == opaque and answer["flag"] & RESPONSE_FLAG:
            return Reply.of(answer, answer_body)


@dataclass(frozen=True)
class Header:
    """The header of a frame of either form, without the values of its fields."""

    form: int
    code: int
    opaque: int
    is_response: bool
    fields: tuple[str, ...]


def read_header(frame: bytes) -> Header:
    (word,) = struct.unpack_from(">I", frame, 4)
    text = frame[8 : 8 + (word & 0xFFFFFF)]
    if word >> 24 == JSON:
        values = json.loads(text)
        names = tuple(sorted(values.get("extFields") or {}))
        return Header(JSON, values["code"], values["opaque"], bool(values["flag"] & RESPONSE_FLAG), names)
    code, _, _, opaque, flag = BINARY_HEAD.unpack_from(text)
    return Header(BINARY, code, opaque, bool(flag & RESPONSE_FLAG), _field_names(text))


def _field_names(text: bytes) -> tuple[str, ...]:
    at = BINARY_HEAD.size
    (remark_size,) = struct.unpack_from(">i", text, at)
    at += 4 + remark_size
    (fields_size,) = struct.unpack_from(">i", text, at)
    at += 4
    end, names = at + fields_size, []
    while at < end:
        (key_size,) = struct.unpack_from(">h", text, at)
        names.append(text[at + 2 : at + 2 + key_size].decode())
        (value_size,) = struct.unpack_from(">i", text, at + 2 + key_size)
        at += 2 + key_size + 4 + value_size
    return tuple(sorted(names))


def binary_request(code: int, opaque: int, fields: Mapping[str, object], body: bytes = b"") -> bytes:
    """A frame with a binary header from a Java client of version 4.9.7."""
    block = b""
    for key, text in texts(fields).items():
        block += struct.pack(">h", len(key)) + key.encode()
        block += struct.pack(">i", len(text.encode())) + text.encode()
    header = BINARY_HEAD.pack(code, 0, 407, opaque, 0) + struct.pack(">ii", 0, len(block)) + block
    return WORDS.pack(4 + len(header) + len(body), BINARY << 24 | len(header)) + header + body
