"""One connection between a fake transport and a fake table of handlers: passes, limits, and its end.

Frames and refusals over real sockets are in `tests/hostile/test_bad_input.py`.
"""

import asyncio
import time
from collections.abc import Iterable
from typing import Any

import pytest
from pocketmq.broker.network.connection import Connection
from pocketmq.broker.network.dispatch import Answer, Call, Handlers
from pocketmq.broker.network.server import Server
from pocketmq.broker.network.server_context import AHEAD_BYTES, PASS_BYTES, PASS_FRAMES, Limits
from pocketmq.protocol.requests.offset import GetMaxOffset, GetMinOffset, OffsetReply
from pocketmq.protocol.requests.topic import GetAllTopicConfig
from pocketmq.protocol.wire.command import ONEWAY_FLAG, Command
from pocketmq.protocol.wire.frame import MAX_FRAME_BYTES, FrameCutter, encode_frame

from broker_fakes import turns
from wire_without_socket import FakeTransport

BIG = bytes(PASS_BYTES // 4 + 1)
BIG_CODE, SMALL_CODE = GetAllTopicConfig.code, GetMaxOffset.code
TABLE = Handlers("test")


class Opaques(list[int]):
    """Of the requests that were handled."""


@TABLE.handles(GetAllTopicConfig)
def big(state: Opaques, request: GetAllTopicConfig, call: Call) -> Answer:
    state.append(call.command.opaque)
    return Answer(body=BIG)


@TABLE.handles(GetMaxOffset)
def small(state: Opaques, request: GetMaxOffset, call: Call) -> OffsetReply:
    state.append(call.command.opaque)
    return OffsetReply(offset=0)


TOO_LONG: list[Answer] = [Answer(body=bytes(MAX_FRAME_BYTES)), Answer(remark="\0" * (MAX_FRAME_BYTES // 6))]
"""In JSON a control character takes six bytes."""


@TABLE.handles(GetMinOffset)
def too_long(state: Opaques, request: GetMinOffset, call: Call) -> Answer:
    return TOO_LONG[request.queue_id]


class Peer(FakeTransport):
    """Counts what is written. `is_reader` False plays a peer that reads nothing: above the limit writing is paused."""

    def __init__(self, server: Server, *, is_reader: bool) -> None:
        self._is_reader = is_reader
        self._high = 0
        self.pieces: list[Any] = []
        self.writes = 0
        self.unread_bytes = 0
        super().__init__(server)

    def set_write_buffer_limits(self, high: int) -> None:
        self._high = high

    def writelines(self, parts: Iterable[bytes]) -> None:
        before = len(self.written)
        super().writelines(parts)
        self.pieces += parts
        self.writes += 1
        if not self._is_reader:
            was_full = self.unread_bytes > self._high
            self.unread_bytes += len(self.written) - before
            if not was_full and self.unread_bytes > self._high:
                self.connection.pause_writing()

    def peer_reads_all(self) -> None:
        self.unread_bytes = 0
        self.connection.resume_writing()

    @property
    def answered(self) -> list[int]:
        """Opaques of all answers so far."""
        return [command.opaque for command in FrameCutter().feed(bytes(self.written))]


def connect(
    *, is_reader: bool = True, unread_bytes: int = MAX_FRAME_BYTES, pass_seconds: float = 60
) -> tuple[Opaques, Connection, Peer]:
    state = Opaques()
    server = Server("test", version=0, limits=Limits(unread_bytes=unread_bytes, pass_seconds=pass_seconds))
    server.handlers = TABLE.bind(state)
    peer = Peer(server, is_reader=is_reader)
    return state, peer.connection, peer


def frames(*codes: int) -> bytes:
    """Requests with the opaques 0, 1, 2, ..."""
    fields = {"topic": "t", "queueId": "0"}
    return b"".join(encode_frame(Command(code, opaque, fields=fields)) for opaque, code in enumerate(codes))


async def test_small_requests_of_one_read_are_answered_a_pass_at_a_time_each_with_one_write() -> None:
    handled, connection, transport = connect()
    connection.data_received(frames(*[SMALL_CODE] * (3 * PASS_FRAMES + 1)))
    for passes in (1, 2, 3):
        assert transport.answered == handled == list(range(passes * PASS_FRAMES))
        assert transport.writes == passes
        await turns(1)
    assert transport.answered == handled == list(range(3 * PASS_FRAMES + 1))
    await turns(2)
    assert transport.writes == 4


async def test_an_error_in_a_later_pass_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one in the first pass does; left open, it would never answer again."""
    errors: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: errors.append(context))
    _, connection, transport = connect()

    def failing(command: Command) -> None:
        raise ZeroDivisionError

    connection.data_received(frames(*[SMALL_CODE] * (PASS_FRAMES + 1)))
    monkeypatch.setattr(connection, "request_received", failing)
    await turns(1)
    assert transport.is_closed
    assert [type(one["exception"]) for one in errors] == [ZeroDivisionError]


async def test_small_pieces_of_a_body_are_joined_with_their_header_and_large_ones_written_as_they_are() -> (
    None
):
    log = memoryview(bytes(range(256)) * 64)
    small = [log[start : start + 100] for start in range(0, 6400, 200)]
    large = [log[:4096], log[4100:9000]]
    for pieces, written in ((small, 1), (large, 3)):
        _, connection, transport = connect()
        connection.write(Command(0, 5, 1), pieces)
        await turns(1)
        (reply,) = FrameCutter().feed(bytes(transport.written))
        assert bytes(reply.body or b"") == b"".join(pieces)
        assert len(transport.pieces) == written
    assert [piece is view for piece, view in zip(transport.pieces[1:], large, strict=True)] == [True, True]


@pytest.mark.parametrize("which", range(len(TOO_LONG)))
async def test_an_answer_that_no_peer_would_read_is_answered_with_the_reason(
    which: int, caplog: pytest.LogCaptureFixture
) -> None:
    _, connection, transport = connect()
    request = Command(GetMinOffset.code, 1, fields={"topic": "t", "queueId": str(which)})
    connection.data_received(
        encode_frame(request) + encode_frame(Command(SMALL_CODE, 2, fields=request.fields))
    )
    refusal, answer = FrameCutter().feed(bytes(transport.written))
    assert (refusal.opaque, refusal.code) == (1, 1)
    assert (refusal.remark or "").startswith("FrameError: a frame of 16777")
    assert (answer.opaque, answer.code) == (2, 0)
    assert [record.exc_info for record in caplog.records if record.name == "pocketmq.network"] == [None]


async def test_a_peer_that_sends_far_ahead_does_not_keep_others_waiting() -> None:
    """Between two passes of the one, the other gets its answer."""
    many, busy, _ = connect()
    _, other, transport = connect()
    busy.data_received(frames(*[SMALL_CODE] * 1000))
    other.data_received(frames(SMALL_CODE))
    assert transport.answered == [0]
    assert len(many) == PASS_FRAMES
    await turns(1)
    other.data_received(frames(SMALL_CODE))
    assert len(transport.answered) == 2
    assert len(many) == 2 * PASS_FRAMES


async def test_a_peer_that_sends_on_while_it_waits_is_answered_in_order_and_read_within_a_bound() -> None:
    handled, connection, transport = connect()
    chunk = frames(*[SMALL_CODE] * 1000)
    held = 0
    connection.data_received(chunk)
    while transport.reads:
        connection.data_received(chunk)
        held += len(chunk)
        assert held <= AHEAD_BYTES + len(chunk)
    while len(handled) < 1000 + held // len(chunk) * 1000:
        assert not transport.reads
        await turns(1)
    assert transport.reads
    assert transport.answered == handled == list(range(1000)) * (1 + held // len(chunk))


async def test_one_way_requests_are_handled_though_the_peer_closed_after_them() -> None:
    handled, connection, transport = connect()
    fields = {"topic": "t", "queueId": "0"}
    one_way = [Command(SMALL_CODE, opaque, ONEWAY_FLAG, fields=fields) for opaque in range(100)]
    connection.data_received(b"".join(map(encode_frame, one_way)))
    assert connection.eof_received()
    assert handled == list(range(PASS_FRAMES))
    await turns(20)
    assert transport.is_closing()
    connection.connection_lost(None)
    assert handled == list(range(100))
    assert not transport.answered


async def test_a_peer_that_closed_its_side_gets_the_replies_at_the_end_and_is_closed() -> None:
    handled, connection, transport = connect()
    connection.data_received(frames(*[SMALL_CODE] * 100))
    assert connection.eof_received()
    assert len(transport.answered) == PASS_FRAMES
    await turns(3)
    assert len(transport.answered) == PASS_FRAMES
    await turns(20)
    assert transport.answered == handled == list(range(100))
    assert transport.is_closing()


async def test_a_pass_ends_with_the_request_that_exceeds_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(1000))
    monkeypatch.setattr(time, "perf_counter", lambda: next(seconds))
    handled, connection, _ = connect(pass_seconds=0.5)
    connection.data_received(frames(*[SMALL_CODE] * 10))
    assert handled == [0]
    await turns(1)
    assert handled == [0, 1]
    await turns(10)
    assert handled == list(range(10))


async def test_large_answers_take_turns_with_other_connections() -> None:
    handled, connection, transport = connect()
    connection.data_received(frames(*[BIG_CODE] * 10, SMALL_CODE))
    assert handled == [0, 1, 2, 3]
    assert not transport.reads
    await turns(1)
    assert handled == [0, 1, 2, 3, 4, 5, 6, 7]
    await turns(1)
    assert transport.answered == handled == list(range(11))
    assert transport.reads


async def test_nothing_more_is_handled_for_a_peer_that_does_not_read() -> None:
    handled, connection, transport = connect(is_reader=False, unread_bytes=2 * PASS_BYTES)
    connection.data_received(frames(*[BIG_CODE] * 1000))
    await turns(50)
    assert len(handled) == 8
    assert not transport.reads
    transport.peer_reads_all()
    await turns(50)
    assert len(handled) == 16
    assert transport.unread_bytes < 3 * PASS_BYTES


async def test_peer_that_reads_again_gets_every_answer_once_and_in_order() -> None:
    handled, connection, transport = connect(is_reader=False, unread_bytes=PASS_BYTES)
    connection.data_received(frames(*[BIG_CODE, SMALL_CODE] * 20))
    for _ in range(20):
        await turns(3)
        transport.peer_reads_all()
    assert transport.answered == handled == list(range(40))
    assert transport.reads


async def test_requests_before_a_bad_frame_are_answered_before_the_connection_closes() -> None:
    _, connection, transport = connect()
    connection.data_received(frames(*[BIG_CODE] * 6) + b"\xff" * 8)
    assert not transport.is_closed
    await turns(2)
    assert transport.answered == list(range(6))
    assert transport.is_closed


async def test_what_is_left_of_a_pass_is_dropped_with_its_connection() -> None:
    handled, connection, transport = connect()
    connection.data_received(frames(*[BIG_CODE] * 10))
    transport.close()
    connection.connection_lost(None)
    await turns(3)
    assert handled == [0, 1, 2, 3]


async def test_idle_peer_is_dropped_even_if_it_left_answers_unread() -> None:
    """A close that waits for the peer to read would wait for ever."""
    gone = asyncio.Event()
    limits = Limits(idle_seconds=0.2)  # real time: the event loop keeps it
    server = Server("test", version=0, limits=limits)
    port = await server.bind("127.0.0.1", 0)
    await server.serve(TABLE.bind(Opaques()), on_close=lambda _: gone.set())
    _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
    writer.write(frames(*[BIG_CODE] * 400))
    async with asyncio.timeout(5):
        await gone.wait()
    writer.close()
    await server.close()
