"""Resetting to a mark: later additions are removed, changed or deleted things are restored, the rest is unchanged."""

import asyncio
from pathlib import Path

import pytest
from pocketmq.broker.errors import Refusal
from pocketmq.broker.name_server.kv_config import ORDER_TOPIC_CONFIG
from pocketmq.broker.name_server.name_server import NameServer
from pocketmq.protocol.requests.group import DeleteSubscriptionGroup
from pocketmq.protocol.requests.pull import PullMessage
from pocketmq.protocol.requests.topic import DeleteTopicInBroker, UpdateAndCreateTopic
from pocketmq.testing import EmbeddedServer, RocketMQ
from pocketmq.testing.state.rewinding import Rewinding

from testing_acts import commit, heartbeat, pull_request
from waiting import wait_until


def name_server_of(server: EmbeddedServer) -> NameServer:
    assert server.node.name_server is not None
    return server.node.name_server


def routes(server: EmbeddedServer) -> dict[str, int]:
    """Topic -> write queues, in the name server's routes."""
    table = server.call(
        lambda: {topic: dict(on) for topic, on in name_server_of(server).routes.topics.items()}
    )
    return {topic: queues["broker-a"].write_queue_nums for topic, queues in table.items()}


def change_queues(server: EmbeddedServer, topic: str, queues: int) -> None:
    server.request(
        UpdateAndCreateTopic(
            topic=topic,
            default_topic="TBW102",
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=6,
            topic_filter_type="SINGLE_TAG",
        )
    )


# -- additions are removed


def test_everything_a_test_created_is_removed(server: EmbeddedServer, mq: RocketMQ) -> None:
    before = server.call(lambda: (dict(server.broker.topics.topics), dict(server.broker.groups.groups)))
    routes_before = routes(server)
    mq.topic("made", queues=1)
    mq.send("made", "one")
    mq.send("made-by-sending", "two")
    mq.group("billing")
    commit(mq, "made", "billing", 1)
    server.call(server.broker.offsets.commit, "made", "never-declared", 0, 1)
    server.reset()
    after = server.call(lambda: (dict(server.broker.topics.topics), dict(server.broker.groups.groups)))
    assert after == before
    assert routes(server) == routes_before
    assert mq.messages("made") == mq.messages("made-by-sending") == []
    assert mq.offsets("made", "billing") == mq.offsets("made", "never-declared") == {}


async def test_held_pull_on_a_removed_topic_is_answered(server: EmbeddedServer, mq: RocketMQ) -> None:
    topic, group = mq.topic("waiting", queues=1), mq.group("billing")
    heartbeat(mq, topic, group)
    pull = pull_request(topic, group, wait_ms=60_000)
    answered = asyncio.create_task(asyncio.to_thread(_outcome, server, pull))
    await asyncio.to_thread(_until_pulls_wait, server)
    server.reset()
    async with asyncio.timeout(3):
        assert await answered != 0
    assert server.call(len, server.broker.pulling.waiters) == 0


def _until_pulls_wait(server: EmbeddedServer) -> None:
    wait_until(lambda: server.call(len, server.broker.pulling.waiters), "a pull waits at the broker")


def _outcome(server: EmbeddedServer, pull: PullMessage) -> int:
    try:
        server.request(pull)
    except Refusal as refusal:
        return refusal.code
    return 0


def test_log_of_a_long_session_does_not_grow() -> None:
    with EmbeddedServer(mappedFileSizeCommitLog=65_536, maxMessageSize=60_000) as server:
        mq = RocketMQ(server)
        for _ in range(3):
            for _ in range(5):
                mq.send("big", b"x" * 40_000)
            assert server.call(lambda: len(server.broker.store.log.files)) > 2
            server.reset()
            assert server.call(lambda: len(server.broker.store.log.files)) == 1
        mq.send("big", "still good")
        assert [message.text for message in mq.messages("big")] == ["still good"]


# -- earlier things stay


def test_everything_that_existed_at_the_mark_stays_and_nothing_else(
    server: EmbeddedServer, mq: RocketMQ
) -> None:
    topic, group = mq.topic("wide", queues=1), mq.group("wide-group")
    mq.send(topic, "one")
    commit(mq, topic, group, 1)
    mark = server.mark()
    mq.send(topic, "two", keys="two")
    mq.send("narrow", "three")
    commit(mq, topic, group, 2)
    commit(mq, "narrow", group, 1)
    server.reset(mark)
    assert [message.text for message in mq.messages(topic)] == ["one"]
    assert mq.send(topic, "four").queue_offset == 1, "its place is used again"
    assert mq.offsets(topic, group) == {0: 1}
    assert mq.messages("narrow") == []
    assert mq.offsets("narrow", group) == {}
    assert routes(server)[topic] == 1


def test_log_is_kept_for_the_topics_that_stay() -> None:
    with EmbeddedServer(mappedFileSizeCommitLog=65_536, maxMessageSize=60_000) as server:
        mq = RocketMQ(server)
        mq.send(mq.topic("wide"), "one")
        mark = server.mark()
        for _ in range(5):
            mq.send("big", b"x" * 40_000)
        server.reset(mark)
        assert [message.text for message in mq.messages("wide")] == ["one"]


def test_changed_and_deleted_topics_and_groups_are_restored(server: EmbeddedServer, mq: RocketMQ) -> None:
    mq.topic("changed", queues=2)
    mq.topic("deleted", queues=2, attributes={"message.type": "FIFO"})
    mq.group("deleted-group")
    topics, groups = server.broker.topics.topics, server.broker.groups.groups
    before = server.call(lambda: (topics["changed"], topics["deleted"], groups["deleted-group"]))
    mark = server.mark()
    change_queues(server, "changed", 7)
    server.request(DeleteTopicInBroker(topic="deleted"))
    server.request(DeleteSubscriptionGroup(group_name="deleted-group"))
    assert routes(server)["changed"] == 7
    server.reset(mark)
    topics, groups = server.broker.topics.topics, server.broker.groups.groups
    assert server.call(lambda: (topics["changed"], topics["deleted"], groups["deleted-group"])) == before
    assert topics["deleted"].attributes == {"message.type": "FIFO"}
    assert routes(server)["changed"] == 2
    mq.send("changed", "one")


def test_ordered_topics_of_the_name_server_are_restored(server: EmbeddedServer) -> None:
    kv = name_server_of(server).kv
    server.call(kv.put, ORDER_TOPIC_CONFIG, "kept", "broker-a:4")
    mark = server.mark()
    server.call(kv.put, ORDER_TOPIC_CONFIG, "kept", "broker-a:8")
    server.call(kv.put, ORDER_TOPIC_CONFIG, "came", "broker-a:8")
    server.reset(mark)
    assert server.call(kv.list, ORDER_TOPIC_CONFIG) == {"kept": "broker-a:4"}


@pytest.mark.parametrize("disk", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_what_was_undone_in_a_kept_store_does_not_come_back_with_its_next_start(
    tmp_path: Path, disk: str
) -> None:
    """A start puts records that the log has and no queue knows into their queues, as after a crash."""
    server = EmbeddedServer(store=tmp_path, flushDiskType=disk)
    with server:
        mq = RocketMQ(server)
        mq.topic("kept", queues=1)
        mq.send("kept", "before")
        mark = server.mark()
        for _ in range(2):
            mq.send("kept", "undone", keys="k")
            mq.send("other", "undone")
            mq.send("kept", "undone", delay_level=3)
            server.reset(mark)
        mq.send("kept", "after")
    with server:
        mq = RocketMQ(server)
        assert [message.text for message in mq.messages("kept")] == ["before", "after"]
        assert (mq.messages("other"), list(mq.delayed)) == ([], [])
        assert not (tmp_path / "discarded").exists()


def test_transactions_are_checked_on_though_a_reset_failed(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = server.broker
    mark = server.mark()

    def refuse(*arguments: object) -> None:
        raise OSError("the disk refuses")

    with monkeypatch.context() as patch:
        patch.setattr(Rewinding, "rewind", refuse)
        with pytest.raises(OSError, match="the disk refuses"):
            server.reset(mark)
    assert server.call(lambda: broker.transactions.check._task is not None), "the checks are running"
    server.reset(mark)
