"""Server processes and a judge for hostile requests, and a connection to a broker that must find no surprise."""

from collections.abc import Iterator

import pytest

from hostile.judge import Judge
from raw_peer import Peer, ServedProcess, broker_without_surprise, serving_requests


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedProcess]:
    with serving_requests(tmp_path_factory.mktemp("requests")) as server:
        yield server


@pytest.fixture(scope="module")
def broker(served: ServedProcess) -> Iterator[Peer]:
    with broker_without_surprise(served) as peer:
        yield peer


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    with Judge(tmp_path_factory.mktemp("judge")) as judge:
        yield judge
