"""A broker for the tests of this folder, and a proxy in front of it that drops connections."""

from collections.abc import Iterator

import pytest
from pocketmq.pipeline.brokers.broker_client import BrokerClient
from pocketmq.testing import EmbeddedServer, RocketMQ

from pipeline.brokers.dropping_proxy import DroppingProxy, Proxied


@pytest.fixture(scope="module")
def rocketmq() -> Iterator[RocketMQ]:
    """A server for one file: the session's server would run to the end of the suite."""
    with EmbeddedServer() as server:
        yield RocketMQ(server)


@pytest.fixture
def proxied(rocketmq: RocketMQ, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxied]:
    """proxied(code, every): a client whose connection is closed at every n-th request of a code."""
    made: list[DroppingProxy] = []

    def make(code: int, every: int) -> tuple[BrokerClient, DroppingProxy]:
        proxy = DroppingProxy(rocketmq.server.broker_addr, code, every)
        made.append(proxy)
        client = BrokerClient(rocketmq.namesrv_addr)
        opened = client._open()
        get = opened.get

        async def through_proxy(address: str) -> object:
            return await get(proxy.address if address == rocketmq.server.broker_addr else address)

        monkeypatch.setattr(opened, "get", through_proxy)
        return client, proxy

    yield make
    for proxy in made:
        proxy.stop()
