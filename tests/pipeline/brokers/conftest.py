"""A broker for the tests of this folder, which may drop connections, and a client of it."""

import itertools
from collections.abc import Callable, Iterator

import pytest
from pocketmq.pipeline.tables.brokers.broker_client import BrokerClient
from pocketmq.testing import EmbeddedServer, RocketMQ
from pocketmq.testing.faults.rule import Rule


@pytest.fixture(scope="module")
def rocketmq() -> Iterator[RocketMQ]:
    """A server for one file: the session's server would run to the end of the suite."""
    with EmbeddedServer() as server:
        yield RocketMQ(server)


@pytest.fixture
def client(rocketmq: RocketMQ) -> Iterator[BrokerClient]:
    with BrokerClient(rocketmq.namesrv_addr).closing() as client:
        yield client


@pytest.fixture
def dropping(rocketmq: RocketMQ) -> Iterator[Callable[[str, int], Rule]]:
    """dropping(code, every): the connection is closed at every n-th request of a code."""

    def add(code: str, every: int) -> Rule:
        numbers = itertools.count(1)
        return rocketmq.faults.disconnect(
            code=code, where=lambda request: next(numbers) % every == 0, times=None
        )

    yield add
    rocketmq.faults.clear()
