"""Each job finds exactly the planted faults of a store, and nothing in a store without faults."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from pocketmq.protocol.message.properties import SHARDING_KEY
from pocketmq.testing import EmbeddedServer, RocketMQ, StoredMessage

from grpc_companion import record_grpc_calls
from spark.planted_store import BAD_BODY, COUNT, DOUBLE, MISSING, TOPIC, write_store

pytest.importorskip("pyspark")

from pocketmq.client.connections.connection import Connection
from pocketmq.pipeline.behaviour import job as behaviour_job
from pocketmq.pipeline.behaviour import latency as latency_job
from pocketmq.pipeline.jobs import audit as audit_job
from pocketmq.pipeline.jobs import duplicates as duplicates_job
from pocketmq.pipeline.moving import export as export_job
from pocketmq.pipeline.moving import replay as replay_job
from pocketmq.pipeline.report.report import Outputs, Report, write
from pocketmq.pipeline.sql.message_input import MessageInput
from pocketmq.pipeline.sql.spark_engine import SparkEngine
from pocketmq.pipeline.tables import open_topic
from pocketmq.protocol.bodies.client import ConsumerData, HeartbeatData
from pocketmq.protocol.requests.membership import HeartBeat
from pocketmq.protocol.requests.pull import PullMessage
from pyspark.sql import SparkSession


def rows(report: Report, name: str) -> list[tuple[object, ...]]:
    (section,) = [one for one in report.sections if one.name == name]
    return [tuple(row) for row in section.frame.collect()]


def test_the_audit_finds_one_gap_and_one_bad_crc(spark: SparkSession, tmp_path: Path) -> None:
    report = audit_job.build(SparkEngine(spark), str(write_store(tmp_path / "store")))
    (damaged,) = rows(report, "damaged")
    assert damaged[2:] == ("bad crc", TOPIC, BAD_BODY % 2, BAD_BODY // 2)
    assert rows(report, "gaps") == [(TOPIC, MISSING[0], "missing", MISSING[1], 1)]
    assert rows(report, "order") == rows(report, "index") == []
    assert report.findings is not None
    told_damage, told_gap = report.findings
    assert told_damage.startswith("bad crc at log position")
    assert told_gap == f"{TOPIC} queue {MISSING[0]}: missing, 1 message from offset {MISSING[1]}"
    write(report, Outputs(str(tmp_path / "r.json"), None, str(tmp_path / "r.html"), is_quiet=True))
    assert json.loads((tmp_path / "r.json").read_text())["gaps"][0]["first"] == MISSING[1]
    assert "bad crc" in (tmp_path / "r.html").read_text()


def test_the_audit_of_a_sound_store_finds_nothing(spark: SparkSession, tmp_path: Path) -> None:
    report = audit_job.build(SparkEngine(spark), str(write_store(tmp_path / "store", is_faulty=False)))
    assert report.findings == []
    assert [row[2] for row in rows(report, "queues")] == [COUNT // 2] * 2


def test_one_duplicate_is_found_with_its_queues_and_offsets(spark: SparkSession, tmp_path: Path) -> None:
    report = duplicates_job.build(
        SparkEngine(spark), MessageInput(store=str(write_store(tmp_path / "store")))
    )
    ((unique, topic, level, copies, seconds, places),) = rows(report, "duplicates")
    assert (unique, topic, level, copies, seconds) == (DOUBLE, TOPIC, "stored twice", 2, 31.0)
    assert places == "0/11, 1/25"


def test_export_writes_every_row_by_day_and_topic(spark: SparkSession, tmp_path: Path) -> None:
    store, folder = write_store(tmp_path / "store", is_faulty=False), tmp_path / "parquet"
    export_job.build(spark, MessageInput(store=str(store)), str(folder))
    assert (folder / "date=2023-11-14" / f"topic={TOPIC}").is_dir()
    assert spark.read.parquet(str(folder)).count() == COUNT
    nothing = export_job.build(
        spark, MessageInput(store=str(store), topics="Nobody"), str(tmp_path / "empty")
    )
    assert rows(nothing, "rows") == []


def test_latency_joins_sends_with_receipts(spark: SparkSession, rocketmq: RocketMQ) -> None:
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
    report = latency_job.build(spark, MessageInput(namesrv_addr=rocketmq.namesrv_addr, topics=topic))
    assert rows(report, "groups") == [("T", "cg", 3, 0, 10, 10, 10, 7, 0)]
    assert [row[1] for row in rows(report, "unmatched")] == [1, 0, 0, 1]


def test_a_replay_sends_the_selected_messages_with_the_id_of_the_original(
    spark: SparkSession, rocketmq: RocketMQ
) -> None:
    source, target = rocketmq.topic("from", queues=2), rocketmq.topic("to", queues=2)
    for number in range(10):
        rocketmq.send(source, f"m{number}", tags="AB"[number % 2], keys=f"k{number}", queue_id=number % 2)
    replay = replay_job.Replay(
        namesrv_addr=rocketmq.namesrv_addr, topics=source, target=target, where="tags = 'A'"
    )
    import msgspec

    replay_job.build(spark, msgspec.structs.replace(replay, is_dry=True))
    assert rocketmq.messages(target) == []
    replay_job.build(spark, replay)
    copies = rocketmq.messages(target)
    assert [(one.text, one.queue_id) for one in copies] == [(f"m{number}", 0) for number in range(0, 10, 2)]
    origins = {one.text: one.message_id for one in rocketmq.messages(source)}
    assert all(one.properties["replayOf"] == origins[one.text] for one in copies)


def replay_of(rocketmq: RocketMQ, source: str, target: str, **options: Any) -> replay_job.Replay:
    return replay_job.Replay(namesrv_addr=rocketmq.namesrv_addr, topics=source, target=target, **options)


@pytest.mark.parametrize("queues", [replay_job.KEEP, replay_job.SPREAD])
def test_a_replay_keeps_sharding_keys(spark: SparkSession, rocketmq: RocketMQ, queues: str) -> None:
    source, target = rocketmq.topic("from", queues=2), rocketmq.topic("to", queues=4)
    for number in range(12):
        key = {SHARDING_KEY: f"s{number % 3}"}
        rocketmq.send(source, f"m{number:02}", properties=key, queue_id=number % 3 % 2)
    report = replay_job.build(spark, replay_of(rocketmq, source, target, queues=queues))
    assert rows(report, "messages") == [(target, 12)]
    by_key: dict[str, list[StoredMessage]] = {}
    for copy in rocketmq.messages(target):
        by_key.setdefault(copy.properties[SHARDING_KEY], []).append(copy)
    for number in range(3):
        copies = by_key[f"s{number}"]
        assert [copy.text for copy in copies] == [f"m{n:02}" for n in range(number, 12, 3)]
        assert len({copy.queue_id for copy in copies}) == 1, "messages of one key stay in order"
    if queues == replay_job.KEEP:
        assert {copy.queue_id for copy in by_key["s1"]} == {1}


def test_a_replay_counts_what_it_sent_in_every_batch(
    spark: SparkSession, rocketmq: RocketMQ, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_job, "BATCH_MESSAGES", 2)
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", 2)  # fewer than there are batches
    source, target = rocketmq.topic("from", queues=1), rocketmq.topic("to", queues=1)
    for number in range(10):
        rocketmq.send(source, f"m{number}", tags="AB"[number % 2])
    replay = replay_of(rocketmq, source, target, where="tags = 'A'", checkpoint=str(tmp_path))
    report = replay_job.build(spark, replay)
    assert report.lead == f"5 messages sent to {target}."
    assert [one.text for one in rocketmq.messages(target)] == ["m0", "m2", "m4", "m6", "m8"]


@pytest.mark.on_demand
def test_a_replay_with_a_checkpoint_continues(
    spark: SparkSession, rocketmq: RocketMQ, tmp_path: Path
) -> None:
    source, target = rocketmq.topic("from", queues=2), rocketmq.topic("to", queues=2)
    replay = replay_job.Replay(
        namesrv_addr=rocketmq.namesrv_addr, topics=source, target=target, checkpoint=str(tmp_path)
    )
    sent = []
    for life in range(2):
        for number in range(4):
            sent.append(f"m{life}{number}")
            rocketmq.send(source, sent[-1], queue_id=number % 2)
        report = replay_job.build(spark, replay)
        assert rows(report, "messages") == [(target, 4)]
        assert sorted(one.text for one in rocketmq.messages(target)) == sent


async def _pull(connection: Connection, topic: str, queue_id: int) -> None:
    request = PullMessage(
        consumer_group="g", topic=topic, queue_id=queue_id, queue_offset=0, max_msg_nums=1, sys_flag=4,
        commit_offset=0, suspend_timeout_millis=0, subscription="*", sub_version=0,
    )  # fmt: skip
    await connection.post(request, timeout_seconds=30)


async def _two_owners(address: str, topic: str) -> None:
    """Queue 0 is handed over from one client to another, which has connected before; both read queue 1 alternately."""
    earlier = await Connection.connect(address)
    beat = HeartbeatData(client_id="client-1", consumer_data_set=[ConsumerData(group_name="g")])
    await earlier.call(HeartBeat(), beat.encode())
    earlier.close()
    clients = [await Connection.connect(address) for _ in range(2)]
    for number, connection in enumerate(clients):
        beat = HeartbeatData(client_id=f"client-{number}", consumer_data_set=[ConsumerData(group_name="g")])
        await connection.call(HeartBeat(), beat.encode())
    for number in (0, 0, 1, 1):
        await _pull(clients[number], topic, 0)
    for number in (0, 1, 0, 1, 0, 1):
        await _pull(clients[number], topic, 1)
    for connection in clients:
        connection.close()


def test_the_behaviour_report_finds_the_one_double_owner(spark: SparkSession, tmp_path: Path) -> None:
    with EmbeddedServer(journal=tmp_path / "journal") as server:
        topic = RocketMQ(server).topic("shared", queues=2)
        asyncio.run(_two_owners(server.broker_addr, topic))
        RocketMQ(server).send(topic, "m", queue_id=1)
        for _ in range(3):
            open_topic(server.namesrv_addr, topic).read_all()
    report = behaviour_job.build(spark, [str(tmp_path / "journal")])
    assert report.findings is not None
    (finding,) = report.findings
    assert "queue 1 was read by two clients at once, client-0 and client-1" in finding
    clients = {row[2]: row[4] for row in rows(report, "clients")}
    assert clients == {"client-0": 5, "client-1": 5}, "a read of the pipeline is no client"
    ends = {row[3]: row[-2] for row in rows(report, "members")}
    assert ends["client-1"] >= max(row[6] for row in rows(report, "owners")), (
        "not the end of its first connection"
    )
    assert any("<svg" in piece for piece in report.drawings)


def test_the_behaviour_report_shows_grpc_clients_with_the_others(spark: SparkSession, tmp_path: Path) -> None:
    """Members by their settings, receives as pulls of no queue, requests by the name of the rpc."""
    asyncio.run(record_grpc_calls(tmp_path / "journal"))
    report = behaviour_job.build(spark, [str(tmp_path / "journal")])
    assert report.findings == []
    (member,) = rows(report, "members")
    assert member[2:5] == ("billing", "test@1@0@a", "JAVA")
    assert member[6:8] == ("CONSUME_FROM_LAST_OFFSET", "CLUSTERING")
    assert member[-1] == "unregistered"
    (client,) = rows(report, "clients")
    assert client[1:4] == ("billing", "test@1@0@a", "JAVA")
    assert client[4:6] == (2, 2), "two receives, two messages"
    counts = {row[2]: row[3] for row in rows(report, "requests")}
    assert counts["ReceiveMessage"] == 2
    assert counts["SendMessage"] == 3
    assert rows(report, "owners") == rows(report, "positions") == []
