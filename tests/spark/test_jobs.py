"""The jobs that need Spark: export and replay."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from pocketmq.pipeline.jobs.moving import export as export_job
from pocketmq.pipeline.jobs.moving import replay as replay_job
from pocketmq.pipeline.jobs.report.report import Report
from pocketmq.pipeline.jobs.sql.message_input import MessageInput
from pocketmq.protocol.message.properties import SHARDING_KEY
from pocketmq.testing import RocketMQ, StoredMessage
from pyspark.sql import SparkSession

from spark.planted_store import COUNT, TOPIC, write_store


def rows(report: Report, name: str) -> list[tuple[object, ...]]:
    (section,) = [one for one in report.sections if one.name == name]
    return [tuple(row.values()) for row in section.frame.rows()]


def test_export_writes_every_row_by_day_and_topic(spark: SparkSession, tmp_path: Path) -> None:
    store, folder = write_store(tmp_path / "store", is_faulty=False), tmp_path / "parquet"
    export_job.build(spark, MessageInput(store=str(store)), str(folder))
    assert (folder / "date=2023-11-14" / f"topic={TOPIC}").is_dir()
    assert spark.read.parquet(str(folder)).count() == COUNT
    nothing = export_job.build(
        spark, MessageInput(store=str(store), topics="Nobody"), str(tmp_path / "empty")
    )
    assert rows(nothing, "rows") == []


def test_a_replay_sends_the_selected_messages_with_the_id_of_the_original(
    spark: SparkSession, rocketmq: RocketMQ
) -> None:
    source, target = rocketmq.topic("from", queues=2), rocketmq.topic("to", queues=2)
    for number in range(10):
        rocketmq.send(source, f"m{number}", tags="AB"[number % 2], keys=f"k{number}", queue_id=number % 2)
    replay = replay_job.Replay(
        namesrv_addr=rocketmq.namesrv_addr, topics=source, target=target, where="tags = 'A'"
    )
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
