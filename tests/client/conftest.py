"""An embedded name server and broker for the client's tests, in the test's own loop, on free ports."""

from collections.abc import AsyncIterator, Collection
from pathlib import Path

import pytest
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.config.name_server_config import NameServerConfig
from pocketmq.broker.node import Node
from pocketmq.client import AdminClient, ClientSettings, Producer, PullConsumer
from pocketmq.client.instance.instance import ClientInstance
from pocketmq.client.instance.instance_config import instance_config
from pocketmq.store.config import StoreConfig
from pocketmq.testing.faults.faults import Faults
from pocketmq.testing.faults.watched_node import WatchedNodes

import any_server
from client_network import Network
from ports import fixed_port


@pytest.fixture(autouse=True)
def local_offsets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where broadcasting consumers keep their offsets."""
    monkeypatch.setenv("ROCKETMQ_CLIENT_LOCAL_OFFSET_STORE_DIR", str(tmp_path / "offsets"))
    return tmp_path / "offsets"


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    """A running server of the 5.x line, whose VIP port is free as well."""
    if any_server.NAMESRV_ADDR:
        pytest.skip("looks into our own server")
    config = BrokerConfig(
        listen_port=fixed_port(),
        store=StoreConfig(store_path_root_dir=str(tmp_path / "store")),
        transaction_time_out=500,
        transaction_check_interval=200,
        recall_message_enable=True,
    )
    started = Node(config, NameServerConfig(listen_port=0))
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
async def instance() -> AsyncIterator[ClientInstance]:
    """What the clients of one client id share, without any server."""
    made = ClientInstance.get(instance_config(ClientSettings(namesrv_addr="127.0.0.1:1")))
    yield made
    await made.shutdown()


@pytest.fixture
def network() -> Network:
    return Network()


@pytest.fixture
async def producer(namesrv_addr: str) -> AsyncIterator[Producer]:
    async with Producer("p", namesrv_addr=namesrv_addr) as one:
        yield one


@pytest.fixture
async def reader(namesrv_addr: str) -> AsyncIterator[PullConsumer]:
    async with PullConsumer("g", namesrv_addr=namesrv_addr) as one:
        yield one


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
