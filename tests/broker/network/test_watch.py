"""Watchers see what passes on a server, in their order. What they take and give back is in `tests/testing/faults`."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from pocketmq.broker.network.connection import Connection
from pocketmq.broker.network.dispatch import Answer, Handlers
from pocketmq.broker.network.server import Server
from pocketmq.broker.network.watch import ReplyBody, Watched, Watcher
from pocketmq.protocol.requests.name_server import GetKvConfig, GetKvConfigReply
from pocketmq.protocol.wire.command import Command

from waiting import until

ASKED = GetKvConfig(namespace="n", key="k")


class Part:
    """What the handler belongs to."""


class Noted(Watcher):
    """Notes what it sees."""

    def __init__(self, notes: list[str], name: str = "") -> None:
        self.notes, self.name = notes, name

    def _note(self, what: str) -> bool:
        self.notes.append(f"{self.name}{what}")
        return False

    def opened(self, connection: Watched) -> None:
        self._note("opened")

    def closed(self, connection: Watched) -> None:
        self._note("closed")

    def received(self, connection: Watched, command: Command) -> bool:
        return self._note(f"received {command.code}")

    def answering(self, connection: Watched, command: Command, reply: Command, body: ReplyBody) -> bool:
        return self._note(f"answering {command.code}")


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Server]:
    handlers = Handlers("watched")

    @handlers.handles(GetKvConfig)
    def get_kv_config(part: Part, request: GetKvConfig) -> Answer:
        return Answer(reply=GetKvConfigReply(value=request.key))

    server = Server("watched", version=1)
    server.port = await server.bind("127.0.0.1", 0)  # type: ignore[attr-defined]
    await server.serve(handlers.bind(Part()))
    yield server
    await server.close()


@pytest_asyncio.fixture
async def caller(server: Server) -> AsyncIterator[Connection]:
    """A connection of another server, which nobody watches."""
    other = Server("caller", version=1)
    yield await other.connect(f"127.0.0.1:{server.port}")  # type: ignore[attr-defined]
    await other.close()


async def ask(caller: Connection, timeout_seconds: float = 2) -> str | None:
    return (await caller.call(ASKED, timeout_seconds=timeout_seconds))[1].value


async def test_the_first_watcher_is_nearest_to_the_peer(server: Server, caller: Connection) -> None:
    notes: list[str] = []
    await ask(caller)
    server.add_watcher(Noted(notes, "first "))
    server.add_watcher(Noted(notes, "last "))
    assert await ask(caller) == "k", "a connection that was open before is watched too"
    assert notes == ["first received 101", "last received 101", "last answering 101", "first answering 101"]


async def test_a_removed_watcher_sees_nothing_more(server: Server, caller: Connection) -> None:
    notes: list[str] = []
    watcher = Noted(notes)
    server.add_watcher(watcher)
    server.remove_watcher(watcher)
    await ask(caller)
    assert notes == []
    assert server.watch is None


async def test_opening_and_closing_is_seen(server: Server) -> None:
    notes: list[str] = []
    server.add_watcher(Noted(notes))
    opened = await server.connect(f"127.0.0.1:{server.port}")  # type: ignore[attr-defined]
    await until(lambda: notes == ["opened", "opened"], what="both ends are connections of this server")
    opened.close()
    await until(lambda: notes[2:] == ["closed", "closed"])


@pytest.mark.parametrize(("flags", "is_raw"), [([True], True), ([True, True], True), ([True, False], False)])
async def test_sends_stay_undecoded_only_if_every_watcher_agrees(
    server: Server, flags: list[bool], is_raw: bool
) -> None:
    for flag in flags:
        watcher = Noted([])
        watcher.sees_raw = flag
        server.add_watcher(watcher)
    assert server.watch is not None
    assert (server.watch.exchanged is not None) is is_raw
