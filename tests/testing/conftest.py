"""One server for the tests of a file, with the settings that the file has as `SERVER`; every test begins without rules
and requests, and what it does is undone."""

from collections.abc import Iterator

import pytest
from pocketmq.testing import EmbeddedServer, RocketMQ


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(**{"emulate": "5", **getattr(request.module, "SERVER", {})}) as server:
        yield server


@pytest.fixture
def one(server: EmbeddedServer) -> Iterator[RocketMQ]:
    mark = server.mark()
    server.requests.clear()
    if server.watched.ledger is not None:
        server.ledger.clear()
    yield RocketMQ(server)
    server.faults.clear()
    server.reset(mark)


@pytest.fixture
def mq(one: RocketMQ) -> RocketMQ:
    return one
