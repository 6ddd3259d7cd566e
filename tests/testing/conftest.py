"""One server for the tests of a file, with the settings that the file has as `SERVER`; every test begins without rules
and requests, and what it does is undone."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pocketmq.testing import EmbeddedServer, RocketMQ

from frames_client import Raw, raw
from threads import begun_since, running_threads


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
def orders(one: RocketMQ) -> str:
    return one.topic("orders")


@pytest.fixture
def topic(one: RocketMQ) -> str:
    """It has one queue."""
    return one.topic("orders", queues=1)


@pytest.fixture
def client(one: RocketMQ) -> Iterator[Raw]:
    """A connection to the broker."""
    with raw(one.server.broker_addr) as connection:
        yield connection


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary stores during the test, which leaves nothing in it, and no thread."""
    before, folder = running_threads(), tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)  # where tempfile keeps the variable's value
    yield folder
    assert (list(folder.iterdir()), begun_since(before)) == ([], [])


@pytest.fixture
def mq(one: RocketMQ) -> RocketMQ:
    return one
