"""One server for the tests of a file, with the settings that the file has as `SERVER`."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from click.testing import Result
from pocketmq.testing import EmbeddedServer

from cli_runs import pocketmq


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(getattr(request.module, "SERVER", {})) as started:
        yield started


@pytest.fixture
def run(server: EmbeddedServer) -> Callable[..., Result]:
    """Runs `pocketmq` with these words, and `stdin`, for the server."""
    return partial(pocketmq, namesrv_addr=server.namesrv_addr)
