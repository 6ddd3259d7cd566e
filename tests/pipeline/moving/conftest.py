"""Where mirrors of tests copy to; what they keep on this machine is theirs, and they ask again soon."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pocketmq.testing import EmbeddedServer, RocketMQ


@pytest.fixture(scope="module")
def target() -> Iterator[RocketMQ]:
    """The server that a mirror copies to."""
    with EmbeddedServer() as server:
        yield RocketMQ(server)


@pytest.fixture(autouse=True)
def _quick_mirrors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("pocketmq.pipeline.jobs.moving.mirror.PAUSE_SECONDS", 0.01)
