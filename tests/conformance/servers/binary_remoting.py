"""The remoting protocol with a binary request header, and the header form of every frame that comes back.

Not PocketMQ's codec, on purpose: a mistake there must not hide behind the same mistake here.

    int32 length | int8 form (0 JSON, 1 binary), int24 header length | header | body
    binary header: int16 code | int8 language | int16 version | int32 opaque | int32 flag
                   | int32 + remark | int32 size of fields | (int16 + key, int32 + value)*
"""

import json
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from conformance.servers.remoting import WORDS, read_exactly

JSON, BINARY = 0, 1
HEAD = struct.Struct(">hBhii")


@dataclass(frozen=True)
class Frame:
    """One frame that was received."""

    form: int
    code: int
    opaque: int
    is_reply: bool


def send_binary(
    connection: socket.socket,
    code: int,
    opaque: int,
    fields: Mapping[str, object],
    body: bytes = b"",
    *,
    flag: int = 0,
) -> None:
    """A frame with a binary header from a Java client of version 4.9.7."""
    block = b""
    for key, value in fields.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        block += struct.pack(">h", len(key)) + key.encode()
        block += struct.pack(">i", len(text.encode())) + text.encode()
    header = HEAD.pack(code, 0, 407, opaque, flag) + struct.pack(">ii", 0, len(block)) + block
    connection.sendall(WORDS.pack(4 + len(header) + len(body), BINARY << 24 | len(header)) + header + body)


def read_form(connection: socket.socket) -> Frame:
    """The next frame, whatever the form of its header."""
    length, word = WORDS.unpack(read_exactly(connection, WORDS.size))
    rest = read_exactly(connection, length - 4)
    form, header = word >> 24, rest[: word & 0xFFFFFF]
    if form == JSON:
        values = json.loads(header)
        return Frame(form, values["code"], values["opaque"], bool(values["flag"] & 1))
    code, _, _, opaque, flag = HEAD.unpack_from(header)
    return Frame(form, code, opaque, bool(flag & 1))
