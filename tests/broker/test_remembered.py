"""What the readers of headers and expressions remember between requests stays small, whatever peers send."""

import struct

from pocketmq.broker.filters import tag_filter as message_filter
from pocketmq.protocol.wire import binary_header


def header_with(name: bytes, value: bytes) -> memoryview:
    field = struct.pack(">h", len(name)) + name + struct.pack(">i", len(value)) + value
    return memoryview(struct.pack(">hbhiiii", 11, 0, 513, 1, 0, 0, len(field)) + field)


def test_header_with_a_huge_name_is_read_but_not_remembered() -> None:
    before = len(binary_header._shapes)
    for length in range(20_000, 20_010):
        command = binary_header.decode_binary_header(header_with(b"n" * length, b"v"), None)
        assert command.fields == {"n" * length: "v"}
    assert len(binary_header._shapes) == before


def test_long_expression_is_applied_but_not_remembered() -> None:
    before = message_filter._remembered_match.cache_info().currsize
    expression = " || ".join(f"Tag{number}" for number in range(1000))
    matches = message_filter.expression_match("T", expression)
    assert matches is not None
    assert message_filter._remembered_match.cache_info().currsize == before
    assert message_filter.expression_match("T", "A") is message_filter.expression_match("T", "A")
