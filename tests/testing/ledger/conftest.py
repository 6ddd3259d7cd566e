"""One server with a ledger for the tests of a file; every test begins with an empty one."""

from collections.abc import Iterator

import pytest
from pocketmq.testing import EmbeddedServer, RocketMQ


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(
        emulate="5", ledger=True, newGroupsStartAt="first", enablePropertyFilter=True
    ) as server:
        yield server


@pytest.fixture
def one(server: EmbeddedServer) -> Iterator[RocketMQ]:
    mark = server.mark()
    server.requests.clear()
    server.ledger.clear()
    yield RocketMQ(server)
    server.faults.clear()
    server.reset(mark)
