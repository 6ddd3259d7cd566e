"""The rules of HTTP/2, one row each: bytes of a client, and what the server answers. Those of HPACK are in
`hpack/test_beside_hpack.py`.

Sections are those of RFC 9113. A row is sent behind a preface. A call on stream 101 follows, which is
answered unless the connection has ended. Where the RFC leaves a choice (a stream error may be one of the connection, a
late frame may be ignored), the row says what we chose.

    GOAWAY CODE            the connection ends            RST 1 CODE     stream 1 ends
    reply 1                stream 1 was answered          refused 1      it was answered with a status other than 200
    PING, SETTINGS         acknowledged
"""

from typing import Final

import pytest
from pocketmq.grpc_endpoint.http2 import frames
from pocketmq.grpc_endpoint.http2.frames import ErrorCode, frame, rst_stream, settings, window_update

from grpc_client import framed
from http2_echo import CALL, Frame, Limited
from http2_pipe import PipePeer

END, ENDED, PADDED, PRIORITY = frames.END_HEADERS, frames.END_STREAM, frames.PADDED, frames.WITH_PRIORITY
WHOLE: Final = END | ENDED
HELLO: Final = framed(b"hello")
ITSELF: Final = bytes((0, 0, 0, 1, 16))
"""As the fields of a priority: stream 1 depends on stream 1."""
PING: Final = frame(frames.PING, 0, 0, b"12345678")
CONTINUATION: Final = frames.CONTINUATION
LAST: Final = 101
MAX: Final = frames.WINDOW_MAX
EACH: Final = CALL.replace(b"\x0b/echo/Unary", b"\x0a/echo/Each")
NEVER: Final = CALL.replace(b"Unary", b"Never")


def headers(stream: int = 1, block: bytes = CALL, flags: int = END) -> bytes:
    return frame(frames.HEADERS, flags, stream, block)


def data(stream: int = 1, payload: bytes = HELLO, flags: int = ENDED) -> bytes:
    return frame(frames.DATA, flags, stream, payload)


def call(stream: int = 1, block: bytes = CALL) -> bytes:
    return headers(stream, block) + data(stream)


def literal(name: bytes, value: bytes) -> bytes:
    """A literal that is not put into the table."""
    return b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value


def length(value: bytes) -> bytes:
    return literal(b"content-length", value)


def block_without(index: int) -> bytes:
    """The headers of a call without the one that is an indexed byte, or literal, at this place."""
    parts = [b"\x83", b"\x86", b"\x44\x0b/echo/Unary", b"\x5f\x10application/grpc"]
    return b"".join(parts[:index] + parts[index + 1 :])


OPEN: Final = headers(1, NEVER)
HELD: Final = headers(1, NEVER) + data(1)
"""Half-closed by the client; the server does not answer."""
PRIORITIZED: Final = frame(frames.PRIORITY, 0, 1, bytes(5))
UNENDED: Final = headers(1, CALL, 0)
BOMB: Final = CALL + b"\x40\x01a\x7f\xa1\x1e" + b"x" * 4000 + b"\xbe" * 4000
X_Y: Final = literal(b"x", b"y")
CONTINUED: Final = frame(CONTINUATION, END, 1, CALL)
CANCELLED: Final = rst_stream(1, ErrorCode.CANCEL)

REPLY, RESET, CLOSED = "reply 1", "RST 1 PROTOCOL_ERROR", "RST 1 STREAM_CLOSED"
CALM = "GOAWAY ENHANCE_YOUR_CALM"
PROTOCOL, SIZE, FLOW, COMPRESSION = (
    f"GOAWAY {name}_ERROR" for name in ("PROTOCOL", "FRAME_SIZE", "FLOW_CONTROL", "COMPRESSION")
)

RFC_9113: Final[list[tuple[str, bytes, str]]] = [
    ("3.4: a call behind the preface is answered", call(), REPLY),
    ("4.1: a frame of an unknown type is ignored", frame(0xFF, 0, 0, bytes(8)), ""),
    ("4.1: a frame of an unknown type on a stream is ignored", frame(0x16, 7, 5, b"?"), ""),
    ("4.1: undefined flags are ignored", frame(frames.PING, 0xFE, 0, bytes(8)), "PING"),
    ("4.1: the reserved bit of a stream is ignored", frame(frames.PING, 0, 1 << 31, bytes(8)), "PING"),
    ("4.2: DATA of 2^14 bytes is accepted", headers(1, EACH) + data(1, framed(bytes(16_379)), 0), REPLY),
    ("4.2: DATA of more than 2^14 bytes", OPEN + data(1, bytes(16_385), 0), SIZE),
    ("4.2: HEADERS of more than 2^14 bytes", headers(1, bytes(16_385)), SIZE),
    ("4.2: SETTINGS of more than 2^14 bytes", frame(4, 0, 0, bytes(16_386)), SIZE),
    ("4.3: a field block that cannot be decoded", headers(1, b"\x40"), COMPRESSION),
    ("4.3: PRIORITY inside a field block", UNENDED + PRIORITIZED, PROTOCOL),
    ("4.3: HEADERS of another stream inside a block", UNENDED + headers(3), PROTOCOL),
    ("5.1: idle: DATA", data(), PROTOCOL),
    ("5.1: idle: RST_STREAM", CANCELLED, PROTOCOL),
    ("5.1: idle: WINDOW_UPDATE", window_update(1, 100), PROTOCOL),
    ("5.1: idle: CONTINUATION", CONTINUED, PROTOCOL),
    ("5.1: idle: PRIORITY is allowed", PRIORITIZED + call(), REPLY),
    ("5.1: half-closed by the client: DATA while it waits", HELD + data(), CLOSED),
    ("5.1: half-closed by the client: HEADERS", HELD + headers(1, NEVER, WHOLE), CLOSED),
    ("5.1: half-closed by the client: CONTINUATION", HELD + CONTINUED, PROTOCOL),
    ("5.1: half-closed by the client: WINDOW_UPDATE is allowed", HELD + window_update(1, 1), ""),
    ("5.1: half-closed by the client: PRIORITY is allowed", HELD + PRIORITIZED, ""),
    ("5.1: half-closed by the client: RST_STREAM is allowed", HELD + CANCELLED, ""),
    ("5.1: closed by RST_STREAM: DATA is ignored", OPEN + CANCELLED + data(), ""),
    ("5.1: closed by RST_STREAM: HEADERS", OPEN + CANCELLED + headers(), CLOSED),
    ("5.1: closed by RST_STREAM: CONTINUATION", OPEN + CANCELLED + CONTINUED, PROTOCOL),
    ("5.1: closed by both: DATA is ignored", call() + data(), REPLY),
    ("5.1: closed by both: HEADERS", call() + headers(), "reply 1, RST 1 STREAM_CLOSED"),
    ("5.1: closed by both: WINDOW_UPDATE is ignored", call() + window_update(1, 1), REPLY),
    ("5.1: closed by both: RST_STREAM is ignored", call() + CANCELLED, REPLY),
    ("5.1: closed by both: PRIORITY is ignored", call() + PRIORITIZED, REPLY),
    ("5.1.1: a stream with an even number", headers(2), PROTOCOL),
    ("5.1.1: a stream with a number below another", call(5) + call(3), "reply 5, RST 3 STREAM_CLOSED"),
    ("5.3: a stream that depends on itself", headers(1, ITSELF + CALL, END | PRIORITY) + data(), REPLY),
    ("5.3: PRIORITY that depends on itself", frame(frames.PRIORITY, 0, 1, ITSELF), ""),
    ("5.5: an unknown frame inside a field block", UNENDED + frame(0xFF, 0, 1, b"?"), PROTOCOL),
    ("6.1: DATA on stream 0", data(0), PROTOCOL),
    ("6.1: padding is removed", headers() + data(1, b"\x04" + HELLO + bytes(4), ENDED | PADDED), REPLY),
    ("6.1: nothing but padding", OPEN + data(1, b"\x05hello", PADDED), ""),
    ("6.1: more padding than payload", OPEN + data(1, b"\x06hello", PADDED), PROTOCOL),
    ("6.1: PADDED without payload", OPEN + data(1, b"", PADDED), PROTOCOL),
    ("6.2: HEADERS on stream 0", headers(0), PROTOCOL),
    ("6.2: padding is removed", headers(1, b"\x02" + CALL + bytes(2), END | PADDED) + data(), REPLY),
    ("6.2: more padding than headers", headers(1, b"\xff" + CALL, END | PADDED), PROTOCOL),
    ("6.2: a priority is skipped", headers(1, bytes(5) + CALL, END | PRIORITY) + data(), REPLY),
    (
        "6.2: padding and a priority",
        headers(1, b"\x01" + bytes(5) + CALL + b"\0", END | PADDED | PRIORITY) + data(),
        REPLY,
    ),
    ("6.2: a priority that is cut", headers(1, bytes(4), END | PRIORITY), SIZE),
    ("6.3: PRIORITY on stream 0", frame(frames.PRIORITY, 0, 0, bytes(5)), PROTOCOL),
    ("6.3: PRIORITY of 4 bytes", frame(frames.PRIORITY, 0, 1, bytes(4)), SIZE),
    ("6.4: RST_STREAM on stream 0", rst_stream(0, ErrorCode.CANCEL), PROTOCOL),
    ("6.4: RST_STREAM of 3 bytes", OPEN + frame(frames.RST_STREAM, 0, 1, bytes(3)), SIZE),
    ("6.5: an acknowledgement is accepted", frame(frames.SETTINGS, frames.ACK, 0), ""),
    ("6.5: an acknowledgement with settings", frame(frames.SETTINGS, frames.ACK, 0, bytes(6)), SIZE),
    ("6.5: SETTINGS on a stream", frame(frames.SETTINGS, 0, 1), PROTOCOL),
    ("6.5: SETTINGS of 3 bytes", frame(frames.SETTINGS, 0, 0, bytes(3)), SIZE),
    ("6.5.2: ENABLE_PUSH of 2", settings({2: 2}), PROTOCOL),
    ("6.5.2: ENABLE_PUSH of 1 is allowed", settings({2: 1}), "SETTINGS"),
    ("6.5.2: a window of 2^31", settings({4: 1 << 31}), FLOW),
    ("6.5.2: frames of less than 2^14", settings({5: 16_383}), PROTOCOL),
    ("6.5.2: frames of 2^24", settings({5: 1 << 24}), PROTOCOL),
    ("6.5.2: an unknown setting is ignored", settings({0xFF: 1}), "SETTINGS"),
    ("6.5.3: SETTINGS are acknowledged", settings({3: 100}), "SETTINGS"),
    ("6.6: a client cannot push", frame(frames.PUSH_PROMISE, END, 1, bytes(4)), PROTOCOL),
    ("6.7: PING is acknowledged", PING, "PING"),
    ("6.7: an acknowledged PING is not answered", frame(frames.PING, frames.ACK, 0, bytes(8)), ""),
    ("6.7: PING on a stream", frame(frames.PING, 0, 1, bytes(8)), PROTOCOL),
    ("6.7: PING of 6 bytes", frame(frames.PING, 0, 0, bytes(6)), SIZE),
    ("6.8: GOAWAY is accepted", frame(frames.GOAWAY, 0, 0, bytes(8)), ""),
    ("6.8: GOAWAY on a stream", frame(frames.GOAWAY, 0, 1, bytes(8)), PROTOCOL),
    ("6.8: GOAWAY of 7 bytes", frame(frames.GOAWAY, 0, 0, bytes(7)), SIZE),
    ("6.9: a window of the connection opened by 0", window_update(0, 0), PROTOCOL),
    ("6.9: a window of a stream opened by 0", OPEN + window_update(1, 0), RESET),
    ("6.9: WINDOW_UPDATE of 3 bytes", frame(frames.WINDOW_UPDATE, 0, 0, bytes(3)), SIZE),
    ("6.9.1: a window of the connection beyond 2^31-1", window_update(0, MAX) * 2, FLOW),
    ("6.9.1: a window of a stream beyond 2^31-1", OPEN + window_update(1, MAX), "RST 1 FLOW_CONTROL_ERROR"),
    (
        "6.9.2: settings that make a window too large",
        settings({4: 1}) + OPEN + window_update(1, MAX - 1) + settings({4: 2}),
        "SETTINGS, SETTINGS, GOAWAY FLOW_CONTROL_ERROR",
    ),
    (
        "6.10: CONTINUATIONs make one block",
        headers(1, CALL[:3], 0)
        + frame(CONTINUATION, 0, 1, CALL[3:9])
        + frame(CONTINUATION, END, 1, CALL[9:])
        + data(),
        REPLY,
    ),
    ("6.10: another frame between CONTINUATIONs", UNENDED + frame(CONTINUATION, 0, 1) + data(), PROTOCOL),
    ("6.10: CONTINUATION on stream 0", UNENDED + frame(CONTINUATION, END, 0), PROTOCOL),
    ("6.10: CONTINUATION of another stream", UNENDED + frame(CONTINUATION, END, 3), PROTOCOL),
    ("6.10: CONTINUATION after END_HEADERS", headers(1, NEVER) + CONTINUED, PROTOCOL),
    ("6.10: CONTINUATION after the last", headers(1, NEVER, 0) + frame(CONTINUATION, END, 1) * 2, PROTOCOL),
    ("6.10: CONTINUATION after DATA", OPEN + data(1, b"", 0) + CONTINUED, PROTOCOL),
    ("6.10: empty CONTINUATIONs without end", UNENDED + frame(CONTINUATION, 0, 1) * 16, CALM),
    ("7: GOAWAY with an unknown code", frame(frames.GOAWAY, 0, 0, bytes(4) + b"\0\0\0\xff"), ""),
    ("7: RST_STREAM with an unknown code", OPEN + frame(frames.RST_STREAM, 0, 1, b"\0\0\0\xff"), ""),
    ("8.1: trailers end the request", headers() + data(1, HELLO, 0) + headers(1, X_Y, WHOLE), REPLY),
    ("8.1: a second HEADERS that does not end the request", OPEN + headers(1, X_Y), RESET),
    ("8.1: DATA shorter than its content-length", headers(1, NEVER + length(b"11")) + data(), RESET),
    ("8.1: DATA longer than its content-length", headers(1, NEVER + length(b"9")) + data(1, HELLO, 0), RESET),
    (
        "8.1: DATA in two frames that is longer",
        headers(1, NEVER + length(b"14")) + data(1, framed(b"he"), 0) + data(1, framed(b"llo")),
        RESET,
    ),
    ("8.1: no DATA where there is a content-length", headers(1, NEVER + length(b"9"), WHOLE), RESET),
    ("8.1: the right content-length", headers(1, CALL + length(b"10")) + data(), REPLY),
    ("8.1: a content-length that is no number", headers(1, CALL + length(b"-1")), RESET),
    ("8.2: a capital letter in a name", headers(1, CALL + literal(b"X-Up", b"y")), RESET),
    ("8.2: a blank in a name", headers(1, CALL + literal(b"a b", b"y")), RESET),
    ("8.2: a name without letters", headers(1, CALL + literal(b"", b"y")), RESET),
    ("8.2: a line feed in a value", headers(1, CALL + literal(b"x", b"a\nb")), RESET),
    ("8.2: a zero byte in a value", headers(1, CALL + literal(b"x", b"a\0b")), RESET),
    ("8.2.2: connection", headers(1, CALL + literal(b"connection", b"keep-alive")), RESET),
    ("8.2.2: transfer-encoding", headers(1, CALL + literal(b"transfer-encoding", b"chunked")), RESET),
    ("8.2.2: te other than trailers", headers(1, CALL + literal(b"te", b"trailers, deflate")), RESET),
    ("8.2.2: te: trailers is allowed", headers(1, CALL + literal(b"te", b"trailers")) + data(), REPLY),
    ("8.3: an unknown header with a colon", headers(1, CALL + literal(b":test", b"ok")), RESET),
    ("8.3: a header of replies", headers(1, b"\x88" + CALL), RESET),
    ("8.3: a colon in trailers", OPEN + headers(1, literal(b":method", b"POST"), WHOLE), RESET),
    ("8.3: a capital letter in trailers", OPEN + headers(1, literal(b"X", b"y"), WHOLE), RESET),
    ("8.3: a header with a colon behind others", headers(1, X_Y + CALL), RESET),
    ("8.3.1: no :method", headers(1, block_without(0)), RESET),
    ("8.3.1: no :scheme", headers(1, block_without(1)), RESET),
    ("8.3.1: no :path", headers(1, block_without(2)), RESET),
    ("8.3.1: an empty :path", headers(1, block_without(2).replace(b"\x86", b"\x86\x04\0")), RESET),
    ("8.3.1: :method twice", headers(1, b"\x83" + CALL), RESET),
    ("8.3.1: :scheme twice", headers(1, b"\x86" + CALL), RESET),
    ("8.3.1: :path twice", headers(1, b"\x84" + CALL), RESET),
    ("8.3.1: GET is no call", headers(1, CALL.replace(b"\x83", b"\x82"), WHOLE), "status 1"),
    ("10.5.1: a header of 4,000 bytes, and 4,000 times its place in the table", headers(1, BOMB), CALM),
]


def outcomes(found: list[Frame]) -> list[str]:
    names = []
    for one in found:
        if one.kind == frames.GOAWAY:
            names.append(f"GOAWAY {ErrorCode(one.code).name}")
        elif one.kind == frames.RST_STREAM and one.code != ErrorCode.NO_ERROR:
            names.append(f"RST {one.stream} {ErrorCode(one.code).name}")
        elif one.kind == frames.DATA:
            names.append(f"reply {one.stream}")
        elif one.kind == frames.HEADERS and one.flags & ENDED and f"reply {one.stream}" not in names:
            names.append(f"status {one.stream}")
        elif one.kind == frames.PING and one.flags & frames.ACK:
            names.append("PING")
        elif one.kind == frames.SETTINGS and one.flags & frames.ACK:
            names.append("SETTINGS")
    return names


async def answers(sent: bytes, *, is_cut: bool = False, calls: int = 10_000) -> str:
    """To these bytes, in one read or a read for each byte, and to a call behind them."""
    peer = PipePeer(Limited(calls=calls, pass_seconds=3600))
    peer.frames()
    for piece in [bytes((byte,)) for byte in sent] if is_cut else [sent]:
        peer.send(piece)
    await peer.settle()
    found = outcomes(peer.frames())
    if not peer.connection.is_failed:
        peer.send(call(LAST))
        assert outcomes(peer.frames()) == [f"reply {LAST}"]
    assert peer.pipe.closed == peer.connection.is_failed
    peer.close()
    return ", ".join(found)


@pytest.mark.parametrize(
    ("sent", "expected"), [row[1:] for row in RFC_9113], ids=[row[0] for row in RFC_9113]
)
async def test_each_rule_has_its_answer(sent: bytes, expected: str) -> None:
    assert await answers(sent) == expected
    if len(sent) < 1_000:
        assert await answers(sent, is_cut=True) == expected


async def test_calls_beyond_the_number_announced_are_refused() -> None:
    """RFC 9113, 5.1.2."""
    opened = headers(1, NEVER) + headers(3, NEVER) + headers(5)
    assert await answers(opened + rst_stream(1, ErrorCode.CANCEL), calls=2) == "RST 5 REFUSED_STREAM"


async def test_the_block_of_a_refused_call_changes_the_table_all_the_same() -> None:
    """RFC 9113, 4.3: the two sides would differ otherwise."""
    refused = headers(1, b"\x40\x01a\x01b" + CALL)
    named = headers(3, b"\x83\x86\x44\x0b/echo/Unary\xbf\xc1") + data(3)
    assert await answers(refused + named) == "RST 1 PROTOCOL_ERROR, reply 3"


async def test_every_value_of_settings_is_checked_and_the_last_one_counts() -> None:
    """RFC 9113, 6.5.3."""
    window = (4).to_bytes(2)
    bad = frame(frames.SETTINGS, 0, 0, window + (1 << 31).to_bytes(4) + window + (1).to_bytes(4))
    assert await answers(bad) == "GOAWAY FLOW_CONTROL_ERROR"
    peer = PipePeer()
    peer.send(frame(frames.SETTINGS, 0, 0, window + (100).to_bytes(4) + window + (3).to_bytes(4)))
    peer.frames()
    peer.send(call())
    assert [one.payload for one in peer.frames() if one.kind == frames.DATA] == [framed(b"hello")[:3]]


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (frames.PREFACE + PING, "GOAWAY PROTOCOL_ERROR"),
        (frames.PREFACE + frame(frames.SETTINGS, frames.ACK, 0), "GOAWAY PROTOCOL_ERROR"),
        (frames.PREFACE + call(), "GOAWAY PROTOCOL_ERROR"),
        (frames.PREFACE[:-1] + b"!", ""),
        (b"GET / HTTP/1.1\r\n\r\n", ""),
    ],
    ids=["PING", "acknowledgement", "a call", "another preface", "HTTP/1"],
)
async def test_a_connection_begins_with_the_preface_and_settings(sent: bytes, expected: str) -> None:
    """RFC 9113, 3.4. Without the preface the peer would not understand a GOAWAY."""
    peer = PipePeer(preface=b"")
    peer.send(sent)
    assert ", ".join(outcomes(peer.frames())) == expected
    assert peer.pipe.closed
