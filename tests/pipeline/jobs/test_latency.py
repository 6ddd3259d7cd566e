"""Latency from a journal: each message counts once for each group, from its send to the first pull that covers it.

From message traces: sends are joined with receipts."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pocketmq.client import LocalTransactionState, Message, TransactionProducer
from pocketmq.pipeline.jobs.behaviour import latency
from pocketmq.pipeline.jobs.sql.message_input import MessageInput
from pocketmq.protocol.requests.pull import PullMessage
from pocketmq.testing import EmbeddedServer, RocketMQ

from pipeline.commands import run
from pipeline.jobs.reports import rows


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("journal")
    with EmbeddedServer(journal=folder) as server:
        rocketmq = RocketMQ(server)
        topic = rocketmq.topic("timed", queues=1)
        for number in range(5):
            rocketmq.send(topic, f"m{number}", queue_id=0)
        for group, offset in (("one", 0), ("one", 2), ("two", 1)):
            pull(rocketmq, topic, rocketmq.group(group), offset)
        rocketmq.send(rocketmq.topic("unread", queues=1), "never pulled")
    return folder


def pull(rocketmq: RocketMQ, topic: str, group: str, offset: int) -> None:
    rocketmq.server.request(
        PullMessage(
            consumer_group=group, topic=topic, queue_id=0, queue_offset=offset, max_msg_nums=2,
            sys_flag=4, commit_offset=0, suspend_timeout_millis=0, subscription="*", sub_version=0,
            expression_type="TAG",
        )
    )  # fmt: skip


def test_each_message_counts_once_for_each_group(engine: Any, journal: Path) -> None:
    report = latency.build_of_journals(engine, [str(journal)])
    groups = rows(report, "groups")
    assert [(row["consumerGroup"], row["messages"]) for row in groups] == [("one", 4), ("two", 2)]
    assert all(0 <= row["p50Ms"] <= row["p99Ms"] <= row["mostMs"] < 60_000 for row in groups)
    assert sum(row["messages"] for row in rows(report, "minutes")) == 6
    assert [(row["topic"], row["messages"]) for row in rows(report, "unmatched")] == [
        ("timed", 1),
        ("unread", 1),
    ]


def test_batches_count_as_their_messages_and_what_is_stored_elsewhere_first_is_left_out(
    engine: Any, tmp_path: Path
) -> None:
    with EmbeddedServer(journal=tmp_path, virtual_time=True) as server:
        rocketmq = RocketMQ(server)
        topic = rocketmq.topic("mixed", queues=1)
        asyncio.run(send_mixed(rocketmq, topic))
        rocketmq.clock.advance("10s")
        for offset in range(0, 8, 2):
            pull(rocketmq, topic, rocketmq.group("one"), offset)
    report = latency.build_of_journals(engine, [str(tmp_path)])
    (group,) = rows(report, "groups")
    assert group["messages"] == 1 + 3
    assert rows(report, "unmatched") == []
    assert [(row["what"], row["messages"]) for row in rows(report, "leftOut")] == [
        ("delayed", 2),
        ("in a transaction", 1),
    ]


async def send_mixed(rocketmq: RocketMQ, topic: str) -> None:
    """One message, a batch of three, a delayed and a timed one, one in a transaction."""
    commit = LocalTransactionState.COMMIT_MESSAGE
    async with TransactionProducer("p", lambda _: commit, namesrv_addr=rocketmq.namesrv_addr) as producer:
        await producer.send(topic, b"alone")
        await producer.send_batch([Message(topic, b"batch %d" % number) for number in range(3)])
        await producer.send(topic, b"level", delay_level=3)
        await producer.send(topic, b"timed", delay=timedelta(seconds=5))
        await producer.send_in_transaction(topic, b"half", lambda *_: commit)


def test_the_command_takes_journals_alone(journal: Path) -> None:
    ran = run("latency", "--journal", str(journal))
    assert ran.exit_code == 0, ran.output
    assert "Latency by group" in ran.output
    mixed = run("latency", "--journal", str(journal), "--store", "s")
    assert (mixed.exit_code, mixed.output) == (
        2,
        "pocketmq: --journal: name no store and no broker with it\n",
    )


def test_latency_joins_sends_with_receipts(engine: Any, rocketmq: RocketMQ) -> None:
    topic = send_traces(rocketmq)
    report = latency.build(engine, MessageInput(namesrv_addr=rocketmq.namesrv_addr, topics=topic))
    groups = [tuple(row.values()) for row in rows(report, "groups")]
    assert groups == [("T", "cg", 3, 0, 10, 10, 10, 7, 0)]
    assert [row["messages"] for row in rows(report, "unmatched")] == [1, 0, 0, 1]
    assert sum(row["messages"] for row in rows(report, "minutes")) == 3


def send_traces(rocketmq: RocketMQ) -> str:
    """Four sends, of which three were received; returns the topic."""
    topic = rocketmq.topic("trace", queues=1)

    def record(*fields: object) -> str:
        return "\x01".join(map(str, fields)) + "\x02"

    for number in range(4):
        unique, sent = f"ID{number}", 1_700_000_000_000 + number
        pub = record("Pub", sent, "R", "pg", "T", unique, "", "", "h", 1, 5, 0, "O", "true", "c")
        rocketmq.send(topic, pub)
        if number < 3:
            before = record("SubBefore", sent + 10 * (number - 1), "R", "cg", f"q{number}", unique, 0, "")
            rocketmq.send(topic, before + record("SubAfter", f"q{number}", unique, 7, "true", "", 0))
    rocketmq.send(topic, b"\xff no text")
    return topic
