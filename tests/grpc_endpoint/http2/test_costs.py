"""What a client can make the server do and keep with few bytes: bounded, and counted."""

import asyncio
import gzip
import time

import pytest
from pocketmq.grpc_endpoint.http2 import frames
from pocketmq.grpc_endpoint.http2.frames import (
    MAX_SETTINGS,
    WINDOW_MAX,
    ErrorCode,
    frame,
    settings,
    window_update,
)
from pocketmq.grpc_endpoint.http2.framing import INFLATED_MORE_BYTES, MessageDeframer, MessageRefused
from pocketmq.grpc_endpoint.http2.limits import RESETS
from pocketmq.grpc_endpoint.http2.outgoing import JOINED_STREAM_BYTES, WRITE_BYTES
from pocketmq.grpc_endpoint.http2.port import FAREWELL_SECONDS, Http2Port

from grpc_client import framed
from http2_echo import CALL, Limited
from http2_pipe import PipePeer

NEVER = CALL.replace(b"Unary", b"Never")
LARGE = CALL.replace(b"Unary", b"Large")
WIDE = settings({frames.SETTINGS_INITIAL_WINDOW_SIZE: WINDOW_MAX}) + window_update(0, WINDOW_MAX - 65_535)


def opened(stream_id: int, block: bytes = CALL) -> bytes:
    return frame(frames.HEADERS, frames.END_HEADERS, stream_id, block)


def called(stream_id: int, body: bytes, block: bytes = CALL) -> bytes:
    return opened(stream_id, block) + frame(frames.DATA, frames.END_STREAM, stream_id, framed(body))


def codes(peer: PipePeer, kind: int = frames.GOAWAY) -> list[int]:
    return [one.code for one in peer.frames() if one.kind == kind]


async def test_a_settings_frame_has_few_entries_and_changes_windows_once() -> None:
    """2,730 entries, each of which walked all streams, held the loop for seconds."""
    peer = PipePeer()
    window = frames.SETTINGS_INITIAL_WINDOW_SIZE.to_bytes(2)
    entries = [window + number.to_bytes(4) for number in range(MAX_SETTINGS + 1)]
    peer.send(opened(1, NEVER) + frame(frames.SETTINGS, 0, 0, b"".join(entries[:-1])))
    assert peer.connection.streams[1].window == MAX_SETTINGS - 1
    assert not codes(peer)
    peer.send(frame(frames.SETTINGS, 0, 0, b"".join(entries)))
    assert codes(peer) == [ErrorCode.ENHANCE_YOUR_CALM]


async def test_replies_to_a_client_that_does_not_read_are_counted_and_wait() -> None:
    """Its windows are open, its socket is full: 188 MiB were in the socket's buffer, and not counted."""
    peer = PipePeer()
    peer.send(WIDE + b"".join(called(2 * number + 1, b"", NEVER) for number in range(50)))
    await peer.settle()
    peer.pipe.is_full = True
    for held in list(peer.connection.streams.values()):
        held.answer(bytes(1_000_000))
    await peer.settle()
    size = 50 * 1_000_005
    assert peer.pipe.get_write_buffer_size() < 2 * WRITE_BYTES
    assert size < peer.port.memory.bytes < size + 2 * WRITE_BYTES
    assert peer.connection.out.kept_bytes == peer.port.memory.bytes
    peer.pipe.is_full = False
    peer.pipe.drain()
    await peer.settle(lambda: not peer.connection.streams)
    await peer.settle()  # the last frames are written
    data = b"".join(one.payload for one in peer.frames() if one.kind == frames.DATA)
    assert len(data) == size
    assert peer.port.memory.bytes == 0


async def test_the_messages_of_a_stream_wait_for_a_socket_that_is_full() -> None:
    peer = PipePeer()
    peer.send(WIDE)
    peer.pipe.is_full = True
    block = CALL.replace(b"\x0b/echo/Unary", b"\x09/echo/All")
    sizes = b" ".join([b"%d" % JOINED_STREAM_BYTES] * 20)
    peer.send(called(1, sizes, block))
    await peer.settle()
    assert peer.pipe.get_write_buffer_size() < 2 * WRITE_BYTES
    assert peer.port.memory.bytes > 20 * JOINED_STREAM_BYTES
    peer.close()
    assert peer.port.memory.bytes == 0


async def test_what_is_in_the_socket_of_a_lost_connection_is_free_again() -> None:
    peer = PipePeer()
    peer.send(WIDE)
    peer.pipe.is_full = True
    for number in range(100):
        peer.send(called(2 * number + 1, bytes(1000)))
    await peer.settle()
    assert peer.port.memory.bytes > WRITE_BYTES
    peer.close()
    assert peer.port.memory.bytes == 0


async def test_a_reply_counts_until_its_last_byte_is_sent() -> None:
    """Its bytes are kept as long: one byte missing of each made a small number of a large memory."""
    peer = PipePeer()
    peer.send(settings({frames.SETTINGS_INITIAL_WINDOW_SIZE: 60_000}) + called(1, b"60000", LARGE))
    assert peer.port.memory.bytes == 60_005
    peer.send(window_update(1, 4))
    assert peer.port.memory.bytes == 60_005
    peer.send(window_update(1, 1))
    assert peer.port.memory.bytes == 0


async def test_a_window_of_the_connection_is_shared_in_turn() -> None:
    """Each update began with the first stream, and walked all that wait."""
    peer = PipePeer()
    peer.send(settings({frames.SETTINGS_INITIAL_WINDOW_SIZE: 1_000_000}) + called(1, b"65530", LARGE))
    for number in range(1, 11):
        peer.send(called(2 * number + 1, b"1000", LARGE))
    peer.frames()
    for _ in range(30):
        peer.send(window_update(0, 10))
    shares: dict[int, int] = {}
    for one in peer.frames():
        shares[one.stream] = shares.get(one.stream, 0) + len(one.payload)
    assert shares == {2 * number + 1: 30 for number in range(1, 11)}


async def test_an_update_of_one_stream_costs_the_same_beside_many_that_wait() -> None:
    def seconds(others: int) -> float:
        peer = PipePeer()
        peer.send(settings({frames.SETTINGS_INITIAL_WINDOW_SIZE: 0}))
        for number in range(others):
            peer.send(called(2 * number + 1, b"100", LARGE))
        updates = window_update(1, 1) + window_update(0, 1)
        began = time.thread_time()
        for _ in range(100):
            peer.send(updates)
        took = time.thread_time() - began
        assert sum(len(one.payload) for one in peer.frames() if one.kind == frames.DATA) == 100
        return took

    assert seconds(4_000) < 20 * seconds(4) + 0.01


async def test_a_pass_ends_with_the_frame_that_exceeds_its_time() -> None:
    """16 requests were the only bound: frames without one were handled all at once."""
    peer = PipePeer(Limited(pass_seconds=0))
    peer.send(b"".join(opened(2 * number + 1, NEVER) for number in range(10)))
    counts = []
    while len(peer.connection.streams) < 10:
        counts.append(len(peer.connection.streams))
        await asyncio.sleep(0)
    assert counts == sorted(set(counts))
    assert len(counts) >= 9


@pytest.mark.parametrize(
    "broken",
    [
        lambda number: called(number, b"", NEVER) + frame(frames.DATA, 0, number, b"x"),
        lambda number: opened(number, NEVER) + opened(number, NEVER),
        lambda number: opened(number, NEVER) + window_update(number, 0),
        lambda number: opened(number, NEVER) + window_update(number, WINDOW_MAX),
        lambda number: opened(number, CALL + b"\x00\x02te\x01x"),
    ],
    ids=["data after the end", "headers twice", "window of 0", "window too large", "malformed headers"],
)
async def test_calls_that_make_us_reset_them_count_like_resets_of_the_client(broken: object) -> None:
    """CVE-2025-8671: the client sends no reset, and its calls cost as much."""
    assert callable(broken)
    peer = PipePeer()
    for number in range(RESETS):
        peer.send(broken(2 * number + 1))
    await peer.settle()
    found = peer.frames()
    assert sum(one.kind == frames.RST_STREAM for one in found) == RESETS
    assert not peer.port.service.open
    peer.send(broken(2 * RESETS + 1))
    await peer.settle()
    assert codes(peer) == [ErrorCode.ENHANCE_YOUR_CALM]


async def test_a_cancelled_call_is_no_progress_of_a_client_that_never_reads() -> None:
    peer = PipePeer()
    peer.send(settings({frames.SETTINGS_INITIAL_WINDOW_SIZE: 0}))
    for stream_id in (1, 3):
        peer.send(called(stream_id, b"100", LARGE))
    before = peer.connection.out.progress_at = peer.connection.out.progress_at - 100
    peer.send(frame(frames.RST_STREAM, 0, 1, bytes(4)))
    assert peer.connection.out.progress_at == before
    peer.send(window_update(3, 1))
    assert peer.connection.out.progress_at > before


async def test_a_client_that_broke_a_rule_and_reads_nothing_is_aborted() -> None:
    """Its calls end at once; the connection was kept as long as the client wanted."""
    peer = PipePeer()
    peer.send(opened(1, NEVER))
    peer.pipe.is_full = True
    peer.send(frame(frames.PING, 0, 0, b"short"))
    assert not peer.connection.streams
    assert peer.connection.is_failed
    peer.connection.last_activity -= FAREWELL_SECONDS + 1
    before = peer.connection.last_activity
    peer.send(b"more")
    assert peer.connection.last_activity == before
    aborted: list[bool] = []
    peer.pipe.abort = lambda: aborted.append(True)  # type: ignore[method-assign]
    port = Http2Port(peer.port.service, Limited(), None)
    port.connections.add(peer.connection)
    port._close_idle()
    port.connections.clear()
    await port.stop()
    assert aborted


async def test_a_whole_request_counts_until_its_end_has_arrived() -> None:
    peer = PipePeer()
    peer.send(opened(1) + frame(frames.DATA, 0, 1, framed(bytes(1000))))
    assert peer.port.memory.bytes == 1005
    peer.send(opened(3) + frame(frames.DATA, 0, 3, framed(bytes(1000)) + framed(bytes(2000))[:10]))
    assert peer.port.memory.bytes == 1005 + 1010
    peer.send(frame(frames.DATA, frames.END_STREAM, 1))
    assert peer.port.memory.bytes == 1010
    peer.send(opened(5, CALL.replace(b"\x0b/echo/Unary", b"\x0a/echo/Each")))
    peer.send(frame(frames.DATA, 0, 5, framed(bytes(1000)) + framed(b"x")[:4]))
    assert peer.port.memory.bytes == 1010 + 4  # a stream of both sides has handled the first
    peer.close()
    assert peer.port.memory.bytes == 0


def test_gzip_makes_a_message_at_most_eight_times_and_a_mebibyte_longer() -> None:
    cutter = MessageDeframer("gzip", 136_314_880)
    small = gzip.compress(bytes(INFLATED_MORE_BYTES))
    assert cutter.feed(framed(small, compressed=1)) == [bytes(INFLATED_MORE_BYTES)]
    large = gzip.compress(bytes(10 * INFLATED_MORE_BYTES))
    with pytest.raises(MessageRefused, match="exceeds maximum size"):
        cutter.feed(framed(large, compressed=1))


EACH = CALL.replace(b"\x0b/echo/Unary", b"\x0a/echo/Each")


def replies(peer: PipePeer) -> list[bytes]:
    return [one.payload[5:] for one in peer.frames() if one.kind == frames.DATA and one.payload]


async def test_the_messages_of_one_frame_are_handled_in_turns() -> None:
    """3,276 empty messages fit into a frame: they held the loop for 60 ms, and as many settings for longer."""
    peer = PipePeer()
    messages = [b"%d" % number for number in range(100)]
    data = b"".join(map(framed, messages))
    peer.send(opened(1, EACH) + frame(frames.DATA, frames.END_STREAM, 1, data) + called(3, b"next"))
    first = replies(peer)
    assert first == messages[: len(first)]
    assert 0 < len(first) < 50
    await peer.settle()
    assert first + replies(peer) == [*messages, b"next"]
    assert not peer.connection.streams
    assert peer.port.memory.bytes == 0


@pytest.mark.parametrize("ending", [frame(frames.RST_STREAM, 0, 1, bytes(4)), b""], ids=["reset", "lost"])
async def test_a_call_that_ends_between_its_messages_leaves_nothing(ending: bytes) -> None:
    peer = PipePeer()
    peer.send(opened(1, EACH) + frame(frames.DATA, 0, 1, framed(b"x") * 1000) + ending + called(3, b"next"))
    if not ending:
        peer.close()
    await peer.settle(lambda: not peer.connection.streams)
    assert not peer.connection.streams
    assert peer.port.memory.bytes == 0
    assert not peer.port.service.open
