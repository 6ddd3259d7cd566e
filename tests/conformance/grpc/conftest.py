"""One server of each side for all rows, and a connection to its gRPC port."""

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from conformance.grpc.side import SIDES, make_side, prepare
from conformance.servers.server import Server, started_at_first_use
from grpc_client import GrpcClient

GRPC_PORT = 8081


@pytest.fixture(scope="session")
def grpc_server(peers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Server]]:
    """The server of a side, started at its first use."""
    with started_at_first_use(
        lambda side: make_side(side, tmp_path_factory.mktemp(f"grpc-{side}")), prepare
    ) as get:
        yield get


@pytest.fixture(params=SIDES)
def side(request: pytest.FixtureRequest, grpc_server: Callable[[str], Server]) -> Server:
    return grpc_server(request.param)


@pytest.fixture
async def client(side: Server) -> AsyncIterator[GrpcClient]:
    async with GrpcClient.connected(side.connect(GRPC_PORT)) as connected:
        yield connected
