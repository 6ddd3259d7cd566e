"""Our frames beside h2: the same bytes of a client, whole and damaged, to both.

h2 is the judge of what breaks HTTP/2. It says so with an exception; we say so with GOAWAY or a reset stream. We may be
stricter than h2 (limits), and more patient where RFC 9113 leaves it to the server.
"""

import asyncio
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import hpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pocketmq.grpc_endpoint.http2 import frames

from grpc_client import framed
from http2_pipe import PipePeer

HEADERS = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/echo/Unary"),
    (":authority", "x"),
    ("content-type", "application/grpc"),
    ("te", "trailers"),
]

NAMES = st.from_regex(r"x-[a-z]{1,8}", fullmatch=True)


async def ours(pieces: list[bytes]) -> tuple[bytes, bool]:
    """(what the server writes, whether it closed) for these reads."""
    peer = PipePeer(preface=b"")
    for piece in pieces:
        peer.send(piece)
        await asyncio.sleep(0)
    await peer.settle()
    peer.close()
    return bytes(peer.pipe.written), peer.pipe.closed


def theirs(data: bytes) -> bool:
    """Whether h2 lets these bytes of a client pass."""
    config = h2.config.H2Configuration(client_side=False, header_encoding=None)
    server = h2.connection.H2Connection(config)
    server.initiate_connection()
    try:
        server.receive_data(data)
    except (h2.exceptions.ProtocolError, hpack.HPACKError, ValueError, AssertionError, IndexError, KeyError):
        return False
    return True


@st.composite
def conversations(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """What a client on h2 sends, and the bodies of its calls in the order of their streams."""
    client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    client.initiate_connection()
    bodies: list[bytes] = []
    for _ in range(draw(st.integers(1, 6))):
        stream = client.get_next_available_stream_id()
        body = draw(st.binary(max_size=3000))
        bodies.append(body)
        extra = draw(
            st.lists(
                st.tuples(st.from_regex(r"x-[a-z]{1,8}", fullmatch=True), st.text("abc", max_size=20)),
                max_size=4,
            )
        )
        client.send_headers(stream, [*HEADERS, *extra])
        whole, cut = framed(body), draw(st.integers(0, len(body)))
        client.send_data(stream, whole[:cut], pad_length=draw(st.none() | st.integers(0, 20)))
        if draw(st.booleans()):
            client.ping(b"12345678")
        if draw(st.booleans()):
            client.update_settings(
                {h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: draw(st.integers(3100, 70_000))}
            )
        client.send_data(stream, whole[cut:], end_stream=True)
    return client.data_to_send(), bodies


def replies(data: bytes) -> dict[int, bytes]:
    """The bodies in the server's bytes, by stream: read by h2."""
    client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    client.initiate_connection()
    for number in range(6):
        client.send_headers(2 * number + 1, HEADERS, end_stream=True)
    found: dict[int, bytes] = {}
    for event in client.receive_data(data):
        if isinstance(event, h2.events.DataReceived):
            found[event.stream_id] = found.get(event.stream_id, b"") + event.data
    return found


@settings(max_examples=30, deadline=None)
@given(conversations(), st.data())
def test_what_h2_writes_we_answer_and_h2_reads_our_answers(
    talk: tuple[bytes, list[bytes]], data: Any
) -> None:
    """Cut into reads anywhere."""
    sent, bodies = talk
    places = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=6)))
    pieces = [sent[start:stop] for start, stop in zip([0, *places], [*places, len(sent)], strict=True)]
    written, closed = asyncio.run(ours([piece for piece in pieces if piece]))
    assert not closed
    assert replies(written) == {2 * number + 1: framed(body) for number, body in enumerate(bodies)}


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(conversations(), st.data())
def test_damaged_bytes_that_h2_lets_pass_do_not_close_us_either(
    talk: tuple[bytes, list[bytes]], data: Any
) -> None:
    """Nor does any damage raise: the server ends the connection by itself, or goes on."""
    sent = bytearray(talk[0])
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(len(frames.PREFACE), len(sent) - 1))
        sent[place] = data.draw(st.integers(0, 255))
    written, closed = asyncio.run(ours([bytes(sent)]))
    if closed:
        assert b"internal error" not in written
        assert not theirs(bytes(sent)) or _is_stricter(written)


def _is_stricter(written: bytes) -> bool:
    """Where we close and h2 does not: our limits, and a first frame that RFC 9113 (3.4) does not allow."""
    return any(reason in written for reason in (b"more than", b"too long", b"at most 16384", b"not SETTINGS"))
