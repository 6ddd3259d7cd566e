"""A client's connection against a peer that misbehaves: silence, garbage, an early end, GO_AWAY, strange requests."""

import asyncio

import pytest
from pocketmq.client.connections import connection as connection_module
from pocketmq.client.connections.connection import Connection
from pocketmq.client.connections.pool import ConnectionPool
from pocketmq.client.errors import NotReachable
from pocketmq.protocol.requests.offset import GetMaxOffset
from pocketmq.protocol.wire.command import RESPONSE_FLAG, Command
from pocketmq.protocol.wire.frame import encode_frame
from pocketmq.protocol.wire.response_codes import ResponseCode

from stream_server import frame_server
from waiting import until

QUESTION = GetMaxOffset(topic="T", queue_id=0)


def reply(asked: Command, writer: asyncio.StreamWriter, code: int = 0) -> None:
    writer.write(encode_frame(Command(code, asked.opaque, RESPONSE_FLAG, None, {"offset": "7"})))


async def test_replies_find_their_calls_in_any_order() -> None:
    held: list[Command] = []

    def backwards(asked: Command, writer: asyncio.StreamWriter) -> None:
        held.append(asked)
        if len(held) == 3:
            for one in reversed(held):
                reply(one, writer, code=one.opaque + 100)

    async with frame_server(backwards) as address:
        connection = await Connection.connect(address)
        futures = [connection.post(QUESTION, timeout_seconds=3) for _ in range(3)]
        codes = [(await future).code for future in futures]
        connection.close()
    assert codes == [101, 102, 103]


async def test_go_away_is_followed_to_a_new_connection_once() -> None:
    seen: list[asyncio.StreamWriter] = []

    def leaving(asked: Command, writer: asyncio.StreamWriter) -> None:
        if writer not in seen:
            seen.append(writer)
        reply(asked, writer, ResponseCode.GO_AWAY if writer is seen[0] else 0)

    async with frame_server(leaving) as address:
        connections = ConnectionPool()
        assert (await connections.call(address, QUESTION)).offset == 7
        assert len(seen) == 2
        connections.close()


async def test_a_cancelled_call_forgets_its_reply() -> None:
    asked_for: list[tuple[Command, asyncio.StreamWriter]] = []
    async with frame_server(lambda asked, writer: asked_for.append((asked, writer))) as address:
        connection = await Connection.connect(address)
        call = asyncio.create_task(connection.call(QUESTION))
        await until(lambda: asked_for)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        reply(*asked_for[0])
        second = asyncio.create_task(connection.call(QUESTION))
        await until(lambda: len(asked_for) == 2)
        reply(*asked_for[1])
        assert (await second).offset == 7
        connection.close()


async def test_a_peer_that_reads_nothing_does_not_keep_a_closed_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_module, "LINGER_SECONDS", 0.05)
    held: list[asyncio.StreamWriter] = []

    async def freeze(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        held.append(writer)

    server = await asyncio.start_server(freeze, "127.0.0.1", 0)
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    connection = await Connection.connect(address)
    call = connection.post(QUESTION, bytes(8 << 20), timeout_seconds=60)
    await asyncio.sleep(0.05)  # the kernel's buffers are full
    connection.close()
    with pytest.raises(NotReachable, match="ended"):
        async with asyncio.timeout(30):
            await call
    for writer in held:
        writer.close()
    server.close()


@pytest.mark.parametrize("garbage", [b"GET / HTTP/1.1\r\n\r\n", b"\x00\x00\x00\x02ab", b"\xff" * 100])
async def test_garbage_ends_the_connection_and_its_calls(garbage: bytes) -> None:
    async with frame_server(lambda asked, writer: writer.write(garbage)) as address:
        connection = await Connection.connect(address)
        with pytest.raises(NotReachable):
            await connection.call(QUESTION)
        assert connection.closed
