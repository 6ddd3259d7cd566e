"""A server process for a file of hostile requests, and a connection to its broker that must find no surprise."""

from collections.abc import Iterator

import pytest

from raw_peer import Peer, ServedProcess, broker_without_surprise, serving_requests


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedProcess]:
    with serving_requests(tmp_path_factory.mktemp("requests")) as server:
        yield server


@pytest.fixture(scope="module")
def broker(served: ServedProcess) -> Iterator[Peer]:
    with broker_without_surprise(served) as peer:
        yield peer
