"""Progress as offsets of a group, at a broker with access control: events are passed in directly, no JVM."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pocketmq.testing import EmbeddedServer, RocketMQ

pytest.importorskip("pyspark")

from pocketmq.pipeline.brokers.broker_client import BrokerClient
from pocketmq.pipeline.errors import OptionError
from pocketmq.pipeline.planning.access import Access
from pocketmq.pipeline.planning.positions import Queue, StreamPosition
from pocketmq.pipeline.session.progress import commit_progress

from reader_account import KEYS, only_reader


class Session:
    """The part of a session that listeners are added to."""

    def __init__(self) -> None:
        self.listeners: list[Any] = []
        self.streams = SimpleNamespace(
            addListener=self.listeners.append, removeListener=self.listeners.remove
        )

    def tell(self, end: dict[str, Any]) -> None:
        event = SimpleNamespace(progress=SimpleNamespace(json=json.dumps({"sources": [{"endOffset": end}]})))
        for one in self.listeners:
            one.onQueryProgress(event)


def test_progress_is_committed_with_access_keys_and_not_without(tmp_path: Path) -> None:
    with EmbeddedServer(store=tmp_path / "store") as server:
        queue = Queue(RocketMQ(server).topic("T", queues=1), "broker-a", 0)
    access = Access(access_key="reader1", secret_key="12345678")
    with (
        EmbeddedServer(only_reader(tmp_path), store=tmp_path / "store") as server,
        BrokerClient(server.namesrv_addr, access).closing() as client,
    ):
        for options, stored in (({}, 0), (KEYS, 7)):  # 4.9 brokers answer 0 where nothing is stored
            session: Any = Session()
            with commit_progress(session, server.namesrv_addr, "lag", options=options):
                session.tell(StreamPosition({queue: 7}).to_json())
            assert client.committed("lag", [queue], 30_000) == {queue: stored}
            assert session.listeners == []


def test_an_option_that_is_not_about_access_is_refused() -> None:
    session: Any = Session()
    with (
        pytest.raises(OptionError, match="unknown option groupId;"),
        commit_progress(session, "h:1", "g", options={"groupId": "g"}),
    ):
        pass
