"""A disk that counts and fails on request."""

import pytest
from pocketmq.store.files import disk as disk_module


class FakeDisk:
    """Replaces fdatasync of mapped files; counts the calls and fails while `broken`."""

    def __init__(self) -> None:
        self.calls = 0
        self.broken = False

    def sync(self, descriptor: int) -> None:
        self.calls += 1
        if self.broken:
            raise OSError(5, "Input/output error")


@pytest.fixture
def disk(monkeypatch) -> FakeDisk:
    fake = FakeDisk()
    monkeypatch.setattr(disk_module, "sync_descriptor", fake.sync)
    return fake
