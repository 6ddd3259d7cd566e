"""One server for the tests of a file; every test begins without rules and requests."""

from collections.abc import Iterator

import pytest
from pocketmq.testing import EmbeddedServer, RocketMQ


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(emulate="5") as server:
        yield server


@pytest.fixture
def one(server: EmbeddedServer) -> Iterator[RocketMQ]:
    mark = server.mark()
    server.requests.clear()
    yield RocketMQ(server)
    server.faults.clear()
    server.reset(mark)
