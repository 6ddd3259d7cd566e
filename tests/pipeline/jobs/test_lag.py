"""Lag of groups, without an engine: from the files of a store, and from brokers."""

from pathlib import Path

from pocketmq.client.access import Access
from pocketmq.pipeline.jobs.answers import lag
from pocketmq.pipeline.jobs.sql.message_input import MessageInput
from pocketmq.testing import EmbeddedServer, RocketMQ

from pipeline.jobs.reports import rows
from pipeline.moving.mirrors import mirror_of, run
from pipeline.tables.stores import BEGIN_MS, STEP_MS
from pipeline.topics import commit, filled
from reader_account import only_reader


def test_lag_of_a_store_is_in_messages_and_in_time(store: Path) -> None:
    now = BEGIN_MS + 600 * STEP_MS
    report = lag.build(MessageInput(store=str(store)), now_ms=lambda: now)
    first, second = rows(report, "queues")
    assert first == {
        "group": "paying",
        "topic": "Bills",
        "brokerName": None,
        "queueId": 0,
        "offset": 3,
        "maxOffset": 30,
        "lag": 27,
        "waitingSeconds": (600 - 60) * STEP_MS / 1000,
    }
    assert (second["queueId"], second["lag"], second["waitingSeconds"]) == (2, 0, None)
    (group,) = rows(report, "groups")
    assert (group["lag"], group["queues"], group["waitingSeconds"]) == (27, 2, first["waitingSeconds"])


def test_lag_of_other_groups_and_topics_is_left_out(store: Path) -> None:
    report = lag.build(MessageInput(store=str(store)), groups="others,paying")
    assert report.lead == f"Of {store}. Without offsets: others."
    assert {row["group"] for row in rows(report, "queues")} == {"paying"}
    assert rows(lag.build(MessageInput(store=str(store), topics="Orders")), "queues") == []


def test_lag_of_a_broker_is_of_all_groups_that_have_offsets(rocketmq: RocketMQ) -> None:
    topic = filled(rocketmq, "behind", 10, queues=2)
    group, idle = rocketmq.group("billing"), rocketmq.group("idle")
    commit(rocketmq, topic, group, {0: 2, 1: 5})
    for names in (None, group):
        found = rows(lag.build(MessageInput(namesrv_addr=rocketmq.namesrv_addr), groups=names), "queues")
        ours = [row for row in found if row["topic"] == topic]
        assert [(row["group"], row["queueId"], row["offset"], row["lag"]) for row in ours] == [
            (group, 0, 2, 3),
            (group, 1, 5, 0),
        ]
        assert all(row["brokerName"] for row in ours)
        assert isinstance(ours[0]["waitingSeconds"], float)
        assert ours[1]["waitingSeconds"] is None
        assert idle not in {row["group"] for row in found}


def test_lag_of_named_groups_and_topics_needs_the_right_to_read_only(tmp_path: Path) -> None:
    with EmbeddedServer(store=tmp_path / "store") as server:
        rocketmq = RocketMQ(server)
        topic, group = filled(rocketmq, "behind", 10, queues=2), rocketmq.group("billing")
        commit(rocketmq, topic, group, {0: 2, 1: 5})
    with EmbeddedServer(only_reader(tmp_path), store=tmp_path / "store") as server:
        access = Access(access_key="reader1", secret_key="12345678", uses_tls=True)
        source = MessageInput(namesrv_addr=server.namesrv_addr, topics=topic, access=access)
        queues = rows(lag.build(source, groups=group), "queues")
    assert [(row["queueId"], row["offset"], row["maxOffset"], row["lag"]) for row in queues] == [
        (0, 2, 5, 3),
        (1, 5, 5, 0),
    ]


def test_brokers_are_asked_at_the_addresses_of_the_map() -> None:
    """`lag` asks their masters, and a mirror has them create its topics."""
    with EmbeddedServer(brokerIP1="192.0.2.1") as hidden, EmbeddedServer() as source:
        port = hidden.broker_addr.rpartition(":")[2]
        access = Access(address_map=f"192.0.2.1:{port}=127.0.0.1:{port}")
        behind, here = RocketMQ(hidden), RocketMQ(source)
        topic, group = filled(behind, "hidden", 1), behind.group("far")
        commit(behind, topic, group, {0: 0})
        report = lag.build(MessageInput(namesrv_addr=hidden.namesrv_addr, access=access), groups=group)
        (row,) = rows(report, "queues")
        assert (row["lag"], row["waitingSeconds"] is not None) == (1, True)
        copied = filled(here, "copied", 1)
        mirror = mirror_of(here, behind, copied, target_access=access)
        assert run(mirror).lead.startswith("1 messages copied")
        assert [message.text for message in behind.messages(copied)] == ["m0"]
