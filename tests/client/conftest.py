"""An embedded name server and broker for the client's tests, in the test's own loop, on free ports."""

from collections.abc import AsyncIterator, Collection
from pathlib import Path

import pytest
from pocketmq.broker.node import Node
from pocketmq.client.admin.client import AdminClient
from pocketmq.testing.faults.faults import Faults
from pocketmq.testing.faults.watched_node import WatchedNodes

import any_server
from client_waits import make_node


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    """A running server of the 5.x line."""
    if any_server.NAMESRV_ADDR:
        pytest.skip("looks into our own server")
    started = make_node(tmp_path / "store")
    await started.start()
    yield started
    await started.stop()


@pytest.fixture
async def faults(node: Node) -> AsyncIterator[Faults]:
    """What `node` does wrong."""
    watched = WatchedNodes(lambda function: function())
    watched.begin()
    watched.attach(node)
    yield watched.faults
    watched.faults.clear()


@pytest.fixture
def namesrv_addr(request: pytest.FixtureRequest) -> str:
    """Where clients of `node` connect, or an empty server elsewhere (`any_server.py`)."""
    if any_server.NAMESRV_ADDR:
        any_server.empty(any_server.NAMESRV_ADDR)
        return any_server.NAMESRV_ADDR
    node: Node = request.getfixturevalue("node")
    return node.namesrv_address


@pytest.fixture
async def admin(namesrv_addr: str) -> AsyncIterator[AdminClient]:
    """An admin client of `node`."""
    async with AdminClient(namesrv_addr=namesrv_addr) as client:
        yield client


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """On another server, keep only the tests that need no access to our server's objects."""
    if any_server.NAMESRV_ADDR:
        items[:] = [item for item in items if _asks_any_server(getattr(item, "fixturenames", ()))]


def _asks_any_server(fixtures: Collection[str]) -> bool:
    return "namesrv_addr" in fixtures and "node" not in fixtures
