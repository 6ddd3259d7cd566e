"""A listening server: its port on every address, and its end."""

import asyncio
import contextlib
import socket

import pytest
from pocketmq.broker.config.addresses import socket_address
from pocketmq.broker.errors import PeerError
from pocketmq.broker.network.connection import Connection
from pocketmq.broker.network.dispatch import Answer, Handlers
from pocketmq.broker.network.server import Server
from pocketmq.broker.node import reachable
from pocketmq.protocol.requests.offset import GetMaxOffset
from pocketmq.protocol.wire.command import ROCKETMQ, Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame


async def test_every_address_of_a_host_gets_the_same_free_port() -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("one address only")
    server = Server("test", version=0)
    port = await server.bind("", 0)
    await server.serve(Handlers("test"))
    for host in ("127.0.0.1", "::1"):
        _, writer = await asyncio.open_connection(host, port)
        writer.close()
    await server.close()


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1:9876"),
        ("", "127.0.0.1:9876"),
        ("::", "[::1]:9876"),
        ("::1", "[::1]:9876"),
        ("localhost", "localhost:9876"),
    ],
)
def test_addresses_are_written_as_in_official_servers(host: str, address: str) -> None:
    assert socket_address(reachable(host), 9876) == address


async def test_cancelled_start_listens_no_longer() -> None:
    server = Server("test", version=0)
    port = await server.bind("127.0.0.1", 0)
    starting = asyncio.create_task(server.serve(Handlers("test")))
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await server.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


async def test_connection_accepted_from_the_backlog_of_a_closed_server_is_dropped() -> None:
    server = Server("test", version=0)
    await server.close()
    backlog = await server.loop.create_server(lambda: Connection(server), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*backlog.sockets[0].getsockname())
    with contextlib.suppress(ConnectionResetError):
        async with asyncio.timeout(5):
            assert await reader.read(1) == b""
    assert not server.connections
    writer.close()
    backlog.close()


async def test_answer_that_cannot_be_encoded_becomes_an_error_instead_of_silence() -> None:
    """What a client answered is passed on to a tool, and its code may need more bits than the tool's header has."""
    table = Handlers("test")

    @table.handles(GetMaxOffset)
    async def passed_on(state: None, request: GetMaxOffset) -> Answer:
        return Answer(code=40_000)

    server = Server("test", version=0, json_replies=False)
    port = await server.bind("127.0.0.1", 0)
    await server.serve(table.bind(None))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    fields = {"topic": "t", "queueId": "0"}
    writer.write(encode_frame(Command(GetMaxOffset.code, 7, fields=fields, header_type=ROCKETMQ)))
    cutter = FrameCutter()
    async with asyncio.timeout(5):
        while not (answers := cutter.feed(await reader.read(1000))):
            pass
    assert (answers[0].code, answers[0].opaque) == (1, 7)
    writer.close()
    await server.close()


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536"])
async def test_text_that_is_no_address_is_a_peer_that_cannot_be_reached(address: str) -> None:
    server = Server("test", version=0)
    with pytest.raises(PeerError, match=f"the address must have the form host:port, got '{address}'"):
        await server.connect(address)
    await server.close()
