"""An embedded name server and broker for the client's tests, in the test's own loop, on free ports."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pocketmq.broker.node import Node
from pocketmq.client.admin.client import AdminClient

from client_waits import make_node


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    """A running server of the 5.x line."""
    started = make_node(tmp_path / "store")
    await started.start()
    yield started
    await started.stop()


@pytest.fixture
def namesrv_addr(node: Node) -> str:
    """Where clients of `node` connect."""
    return node.namesrv_address


@pytest.fixture
async def admin(namesrv_addr: str) -> AsyncIterator[AdminClient]:
    """An admin client of `node`."""
    async with AdminClient(namesrv_addr=namesrv_addr) as client:
        yield client
