"""Progress as offsets of a group, at a broker with access control: events are passed in directly, no JVM."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pocketmq.client.access import Access
from pocketmq.pipeline.errors import GroupInUse, OptionError, PipelineError
from pocketmq.pipeline.spark.session.progress import commit_progress
from pocketmq.pipeline.tables.brokers.broker_client import BrokerClient
from pocketmq.pipeline.tables.brokers.group_offsets import live_members
from pocketmq.pipeline.tables.planning.positions import Queue, StreamPosition
from pocketmq.protocol.bodies.client import ConsumerData, HeartbeatData
from pocketmq.protocol.requests.membership import HeartBeat
from pocketmq.testing import EmbeddedServer, RocketMQ
from pyspark.sql.streaming.datasource import ReadAllAvailable

from frames_client import Raw, raw
from reader_account import KEYS, only_reader
from spark.source_readers import stream_of


class Session:
    """The part of a session that listeners are added to."""

    def __init__(self) -> None:
        self.listeners: list[Any] = []
        self.streams = SimpleNamespace(
            addListener=self.listeners.append, removeListener=self.listeners.remove
        )

    def tell(self, end: dict[str, Any], **more: Any) -> None:
        progress = {"id": "1", "sources": [{"endOffset": end}], **more}
        event = SimpleNamespace(progress=SimpleNamespace(json=json.dumps(progress)))
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
        with BrokerClient(server.namesrv_addr).closing() as nobody, pytest.raises(PipelineError):
            live_members(nobody, "lag", [queue], 30_000)  # a refusal does not say that there are none


class LateSession(Session):
    """The bus brings an event when it is asked for the third time."""

    def __init__(self, end: dict[str, Any], *, has_ended: bool) -> None:
        super().__init__()
        self._end, self._has_ended, self._asked = end, has_ended, 0
        self.streams = type("Streams", (), {"active": property(lambda _: self.active())})()
        self.streams.addListener, self.streams.removeListener = self.add, self.listeners.remove

    def add(self, listener: Any) -> None:
        self.listeners.append(listener)
        listener.onQueryStarted(SimpleNamespace(id="1"))

    def active(self) -> list[Any]:
        self._asked += 1
        if self._asked == 3:
            self.tell(self._end, batchId=4)
            if self._has_ended:
                self.listeners[0].onQueryTerminated(SimpleNamespace(id="1"))
        last = SimpleNamespace(batchId=4)
        return [] if self._has_ended else [SimpleNamespace(id="1", lastProgress=last)]


@pytest.mark.parametrize("has_ended", [True, False])
def test_the_last_batch_is_committed_although_its_event_is_late(rocketmq: RocketMQ, has_ended: bool) -> None:
    queue, group = Queue(rocketmq.topic("late", queues=1), "broker-a", 0), rocketmq.group("late")
    session: Any = LateSession(position(queue, 7), has_ended=has_ended)
    with commit_progress(session, rocketmq.namesrv_addr, group):
        pass
    with BrokerClient(rocketmq.namesrv_addr).closing() as client:
        assert client.committed(group, [queue], 5_000) == {queue: 7}
    assert session.listeners == []


def test_a_stream_commits_what_it_has_read_also_if_no_batch_follows(rocketmq: RocketMQ) -> None:
    topic, group = rocketmq.topic("empty", queues=1), rocketmq.group("empty")
    rocketmq.send(topic, "m")
    queue = Queue(topic, "broker-a", 0)
    stream = stream_of(rocketmq, topic, groupId=group, startingOffsets="latest")
    with BrokerClient(rocketmq.namesrv_addr).closing() as client:
        stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
        assert client.committed(group, [queue], 5_000) == {queue: None}, "nothing is read yet"
        read = position(queue, 1)
        assert stream.latestOffset(read, ReadAllAvailable()) is read
        assert client.committed(group, [queue], 5_000) == {queue: 1}


def test_an_option_that_is_not_about_access_is_refused() -> None:
    session: Any = Session()
    with (
        pytest.raises(OptionError, match="unknown option groupId;"),
        commit_progress(session, "h:1", "g", options={"groupId": "g"}),
    ):
        pass


def join(consumer: Raw, group: str) -> None:
    """Become a member of a group. The broker tells new members about themselves, before or after its reply."""
    data = ConsumerData(group_name=group, consume_type="CONSUME_PASSIVELY", message_model="CLUSTERING")
    consumer.send(
        HeartBeat.code, body=HeartbeatData(client_id="a-consumer", consumer_data_set=[data]).encode()
    )
    while consumer.receive().flag & 1 == 0:
        pass


def position(queue: Queue, offset: int, **more: Any) -> dict[str, Any]:
    return StreamPosition({queue: offset}, **more).to_json()


def test_each_query_commits_to_a_group_of_its_own_and_never_backwards(rocketmq: RocketMQ) -> None:
    queue = Queue(rocketmq.topic("own", queues=1), "broker-a", 0)
    session: Any = Session()
    with (
        BrokerClient(rocketmq.namesrv_addr).closing() as client,
        commit_progress(session, rocketmq.namesrv_addr),
    ):
        session.tell(position(queue, 7), name="order archive")
        session.tell(position(queue, 9), id="2-3")

        def stored(group: str) -> int | None:
            return client.committed(group, [queue], 5_000)[queue]

        assert (stored("spark-order_archive"), stored("spark-2-3")) == (7, 9)
        session.tell(position(queue, 5), name="order archive")
        assert stored("spark-order_archive") == 7, "an event that is late"
        session.tell(position(queue, 2, start_offsets={queue: 0}), name="order archive")
        assert stored("spark-order_archive") == 2, "the queue was made anew"


def test_a_group_has_one_query_and_no_live_members_unless_that_is_asked_for(
    rocketmq: RocketMQ, caplog: pytest.LogCaptureFixture
) -> None:
    topic, group = rocketmq.topic("used", queues=1), rocketmq.group("consumers")
    queue = Queue(topic, "broker-a", 0)
    with (
        raw(rocketmq.server.broker_addr) as consumer,
        BrokerClient(rocketmq.namesrv_addr).closing() as client,
    ):

        def commits(offset: int, query: str = "1", **options: Any) -> int | None:
            session: Any = Session()
            with commit_progress(session, rocketmq.namesrv_addr, group, **options):
                session.tell(position(queue, offset), id=query)
                session.tell(position(queue, offset + 1), id="another")
            return client.committed(group, [queue], 5_000)[queue]

        assert commits(3) == 3
        assert f"query another commits nothing: group {group} is another query's" in caplog.text
        join(consumer, group)
        assert commits(5) == 3
        assert f"group {group} has 1 live members (a-consumer)" in caplog.text
        assert commits(5, shares_group=True) == 5


def test_a_stream_that_would_commit_to_a_group_with_live_members_does_not_start(rocketmq: RocketMQ) -> None:
    topic, group = rocketmq.topic("shared", queues=1), rocketmq.group("members")
    with raw(rocketmq.server.broker_addr) as consumer:
        join(consumer, group)
        for commits, is_refused in (("true", True), ("false", False), ("force", False)):
            stream = stream_of(
                rocketmq, topic, groupId=group, commitOffsets=commits, startingOffsets="latest"
            )
            start = stream.initialOffset()
            if is_refused:
                with pytest.raises(GroupInUse, match=r"1 live members \(a-consumer\).*commitOffsets=force"):
                    stream.latestOffset(start, ReadAllAvailable())
            else:
                assert stream.latestOffset(start, ReadAllAvailable()) is start
