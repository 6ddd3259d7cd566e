"""Cutting a byte stream into commands, compared with the official decoder's results for the same bytes (`vectors/`)."""

import json
import struct
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pocketmq.protocol.errors import FrameError
from pocketmq.protocol.wire.command import JSON, ROCKETMQ, Command
from pocketmq.protocol.wire.frame import MAX_FRAME_BYTES, FrameCutter, encode_frame, encode_prefix

from official_vectors import rows

WHERE_THE_LINES_DIFFER = {
    "json duplicate key": "5.5.0",
    "json member in capitals": "5.5.0",
    "json unquoted names": "4.9.8",
    "json byte order mark": "4.9.8",
    "json broken UTF-8": "4.9.8",
}
"""Which line we follow: the lax one where the strict one closes the connection, else the newer one."""


def stream_of(text: str) -> bytes:
    if not text.startswith("length "):
        return bytes.fromhex(text)
    length, header = int(text.removeprefix("length ")), b'{"code":1,"opaque":9}'
    return struct.pack(">ii", length, len(header)) + header + bytes(length - 4 - len(header))


def judged_streams() -> list[Any]:
    old, new = ({row[0]: row for row in rows(f"frames-{line}.tsv")} for line in ("4.9.8", "5.5.0"))
    assert {name for name in new if new[name] != old[name]} == WHERE_THE_LINES_DIFFER.keys()
    followed = [(old if WHERE_THE_LINES_DIFFER.get(name) == "4.9.8" else new)[name] for name in new]
    return [pytest.param(*row[1:], id=row[0]) for row in followed]


def official_view(command: Command) -> dict[str, Any]:
    """As `Frames.java` prints a command: no empty key, a long body by its size."""
    view: dict[str, Any] = {
        "code": command.code,
        "opaque": command.opaque,
        "flag": command.flag,
        "version": command.version,
        "language": command.language,
    }
    if command.remark is not None:
        view["remark"] = command.remark
    if command.fields is not None:
        view["fields"] = {key: value for key, value in command.fields.items() if key}
    if command.body is not None:
        body = command.body
        view["body"] = bytes(body).decode("latin-1") if len(body) <= 64 else len(body)
    return view


@pytest.mark.parametrize(("stream", "commands", "closed"), judged_streams())
def test_a_stream_is_cut_as_the_official_decoder_cuts_it(stream: str, commands: str, closed: str) -> None:
    cutter = FrameCutter()
    seen = [official_view(command) for command in cutter.feed(stream_of(stream))]
    expected = [{"language": "JAVA"} | official for official in json.loads(commands)]  # none known: Java's
    assert seen == expected
    assert (cutter.failure is not None) == (closed == "!")


def command(number: int, body: bytes | None = None, header_type: int = JSON) -> Command:
    return Command(105, number, 0, None, {"topic": f"T{number}"}, body, "JAVA", 399, header_type)


def plain(commands: list[Command]) -> list[Command]:
    """Bodies as bytes, to compare."""
    for seen in commands:
        seen.body = None if seen.body is None else bytes(seen.body)
    return commands


MANY = [command(1, b"one"), command(2, None, ROCKETMQ), command(3, b"\0" * 300), command(4, b"x", ROCKETMQ)]
STREAM = b"".join(encode_frame(each) for each in MANY)


def test_a_cut_frame_is_kept_and_completed_by_the_next_chunk() -> None:
    cutter = FrameCutter()
    whole = encode_frame(MANY[0])
    assert plain(cutter.feed(whole + whole[:5])) == [MANY[0]]
    assert cutter.pending_bytes == 5
    assert plain(cutter.feed(whole[5:] + whole[:2])) == [MANY[0]]
    assert cutter.pending_bytes == 2


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_split_of_the_stream_gives_the_same_commands(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    cutter = FrameCutter()
    seen = []
    for start, end in pairwise(edges):
        seen += plain(cutter.feed(STREAM[start:end]))
    assert seen == MANY
    assert cutter.pending_bytes == 0


def test_bodies_do_not_change_when_more_bytes_arrive() -> None:
    cutter = FrameCutter()
    first = cutter.feed(STREAM[:-1])
    cutter.feed(STREAM[-1:] + STREAM)
    assert plain(first) == MANY[:3]


@pytest.mark.parametrize("body", [None, b"", bytearray(), memoryview(b"")])
@pytest.mark.parametrize("header_type", [JSON, ROCKETMQ])
def test_an_empty_body_arrives_as_none(body: Any, header_type: int) -> None:
    (seen,) = FrameCutter().feed(encode_frame(command(1, body, header_type)))
    assert seen.body is None


@pytest.mark.parametrize("body", [b"abc", bytearray(b"abc"), memoryview(b"abc")])
def test_a_body_of_any_kind_of_bytes_is_sent(body: Any) -> None:
    (seen,) = FrameCutter().feed(encode_frame(command(1, body)))
    assert seen.body == b"abc"


@pytest.mark.parametrize("header_type", [JSON, ROCKETMQ])
def test_a_prefix_and_its_body_are_the_frame(header_type: int) -> None:
    whole = command(1, b"hello", header_type)
    assert encode_prefix(whole, 5) + b"hello" == encode_frame(whole)


@pytest.mark.parametrize("header_type", [JSON, ROCKETMQ])
def test_a_request_has_fields_of_limited_length(header_type: int) -> None:
    """Handlers split, keep and repeat them. Properties and values of settings have limits of their own."""
    long = "x" * 70_000
    for name in ("properties", "i", "value"):
        [command] = FrameCutter().feed(encode_frame(Command(1, fields={name: long}, header_type=header_type)))
        assert command.fields == {name: long}
    cutter = FrameCutter()
    assert cutter.feed(encode_frame(Command(1, fields={"topic": long}, header_type=header_type))) == []
    assert "the field topic has 70000 characters" in str(cutter.failure)
    reply = Command(0, flag=1, fields={"msgOffsetInfo": long}, header_type=header_type)
    assert len(FrameCutter().feed(encode_frame(reply))) == 1


def test_a_frame_that_no_peer_would_read_is_not_written() -> None:
    with pytest.raises(FrameError, match="16777217 bytes"):
        encode_prefix(Command(1), MAX_FRAME_BYTES + 1 - len(encode_prefix(Command(1), 0)))


def test_after_a_failure_nothing_more_is_read() -> None:
    cutter = FrameCutter()
    bad = struct.pack(">iI", 4, 9 << 24)
    assert plain(cutter.feed(STREAM + bad + STREAM)) == MANY
    failure = cutter.failure
    assert isinstance(failure, FrameError)
    assert cutter.feed(STREAM) == []
    assert cutter.failure is failure


numbers = st.integers(0, (1 << 31) - 1)
commands = st.builds(
    Command,
    code=st.integers(0, 0x7FFF),
    opaque=numbers,
    flag=st.integers(0, 3),
    remark=st.none() | st.text(min_size=1, max_size=40),
    fields=st.none()
    | st.dictionaries(
        st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=40), min_size=1, max_size=6
    ),
    body=st.none() | st.binary(min_size=1, max_size=200),
    language=st.sampled_from(["JAVA", "CPP", "GO", "RUST", "NODE_JS", "PYTHON"]),
    version=st.integers(0, 0x7FFF),
    header_type=st.sampled_from([JSON, ROCKETMQ]),
)


@settings(max_examples=300)
@given(st.lists(commands, min_size=1, max_size=4), st.data())
def test_every_command_is_read_back_in_both_header_forms(sent: list[Command], data: st.DataObject) -> None:
    stream = b"".join(map(encode_frame, sent))
    split = data.draw(st.integers(0, len(stream)))
    cutter = FrameCutter()
    assert plain(cutter.feed(stream[:split])) + plain(cutter.feed(stream[split:])) == sent


@settings(max_examples=300)
@given(st.binary(max_size=60), st.sampled_from([0, 1, 1, 2]))
def test_any_header_bytes_give_a_command_or_a_failure(header: bytes, header_type: int) -> None:
    cutter = FrameCutter()
    frame = struct.pack(">iI", 4 + len(header), header_type << 24 | len(header)) + header
    seen = cutter.feed(frame)
    assert len(seen) == (1 if cutter.failure is None else 0)
