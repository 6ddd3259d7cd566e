"""Messages in a pull reply's body, read with a decoder of the tests' own: PocketMQ's must not check itself.

size 4 | magic 4 | crc 4 | queue 4 | flag 4 | queue offset 8 | position 8 | sysflag 4 | born 8 | born host 8 |
stored 8 | store host 8 | reconsumed 4 | prepared 8 | body size 4 | body | topic size 1 | topic |
properties size 2 | properties (name 0x01 value 0x02 ...)
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

FIXED = struct.Struct(">iiiiiqqiq8sq8siqi")
assert FIXED.size == 88


@dataclass(frozen=True)
class Stored:
    """One message as the broker delivers it."""

    topic: str
    queue: int
    offset: int
    position: int
    body: bytes
    text: str
    """Its properties as they are stored."""
    flag: int
    sys_flag: int
    born_ms: int
    tries: int
    prepared: int

    @property
    def properties(self) -> dict[str, str]:
        return dict(pair.split("\x01", 1) for pair in self.text.split("\x02") if pair)


def stored(body: bytes) -> Iterator[Stored]:
    start = 0
    while start < len(body):
        size, _, _, queue, flag, offset, position, sys_flag, born_ms, _, _, _, tries, prepared, body_size = (
            FIXED.unpack_from(body, start)
        )
        at = start + FIXED.size
        content = body[at : at + body_size]
        at += body_size
        topic = body[at + 1 : at + 1 + body[at]].decode()
        at += 1 + body[at]
        text = body[at + 2 : at + 2 + int.from_bytes(body[at : at + 2], "big")].decode()
        yield Stored(topic, queue, offset, position, content, text, flag, sys_flag, born_ms, tries, prepared)
        start += size
