"""A job in SQL gives the same rows on Spark as on DuckDB: the text is one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("duckdb", reason="the extra pocketmq[tables] is not installed")

import msgspec
from pocketmq.pipeline.behaviour import journal_latency
from pocketmq.pipeline.errors import OptionError
from pocketmq.pipeline.jobs import audit, compare, duplicates, find, latest, stats
from pocketmq.pipeline.sql.duckdb_engine import DuckEngine
from pocketmq.pipeline.sql.message_input import MessageInput
from pocketmq.pipeline.sql.spark_engine import SparkEngine
from pocketmq.protocol.requests.pull import PullMessage
from pocketmq.testing import EmbeddedServer, RocketMQ
from pyspark.sql import SparkSession

from pipeline.tables.stores import BEGIN_MS, STEP_MS, write_store
from spark.planted_store import write_store as write_planted_store


def plain(value: Any) -> Any:
    """Times without their zone: Spark's rows have none."""
    if isinstance(value, float):
        return round(value, 9)
    return value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value


def tables(report: Any) -> dict[str, Any]:
    return {
        section.name: [
            {name: plain(value) for name, value in row.asDict(recursive=True).items()}
            for row in section.frame.collect()
        ]
        for section in report.sections
    }


JOBS: dict[str, Callable[[Any, MessageInput], Any]] = {
    "stats": lambda engine, source: stats.build(engine, source, keys=5),
    "find": lambda engine, source: find.build(
        engine, source, find.Wanted(message_key="all", text='"n": 5', tag="B", where="queueId in (1, 3)")
    ),
    "find a text with a backslash": lambda engine, source: find.build(
        engine, source, find.Wanted(text="\\n'")
    ),
    "latest": lambda engine, source: latest.build(engine, source, by="properties['TAGS']", deleted_by="A"),
    "compare": lambda engine, source: compare.build(
        engine, source, msgspec.structs.replace(source, topics="Orders"), has_queues=True, has_minutes=True
    ),
    "audit": lambda engine, source: audit.build(engine, source.store or ""),
    "duplicates": lambda engine, source: duplicates.build(engine, source, by="msgId"),
}


@pytest.mark.parametrize("job", JOBS)
def test_both_engines_give_the_same_rows(spark: SparkSession, tmp_path: Path, job: str) -> None:
    write = write_planted_store if job in ("audit", "duplicates") else write_store
    store = str(write(tmp_path / "store"))
    source = MessageInput(store=store)
    if job == "stats":
        source = MessageInput(store=store, since_ms=BEGIN_MS, until_ms=BEGIN_MS + 100 * STEP_MS)
    on_spark = JOBS[job](SparkEngine(spark), source)
    with DuckEngine() as engine:
        on_duckdb = JOBS[job](engine, source)
        assert tables(on_spark) == tables(on_duckdb)
        assert on_spark.findings == on_duckdb.findings


def test_a_wrong_text_is_an_option_error_in_one_line(spark: SparkSession) -> None:
    for text in ("select nothing from nowhere", "selekt 1"):
        with pytest.raises(OptionError, match="SQL: ") as raised:
            SparkEngine(spark).sql(text)
        assert "\n" not in str(raised.value)


def test_latency_from_a_journal_is_the_same_on_both_engines(spark: SparkSession, tmp_path: Path) -> None:
    with EmbeddedServer(journal=tmp_path / "journal") as server:
        rocketmq = RocketMQ(server)
        topic = rocketmq.topic("timed", queues=1)
        for number in range(5):
            rocketmq.send(topic, f"m{number}", queue_id=0)
        rocketmq.server.request(
            PullMessage(
                consumer_group=rocketmq.group("one"), topic=topic, queue_id=0, queue_offset=1, max_msg_nums=3,
                sys_flag=4, commit_offset=0, suspend_timeout_millis=0, subscription="*", sub_version=0,
                expression_type="TAG",
            )
        )  # fmt: skip
    journals = [str(tmp_path / "journal")]
    on_spark = tables(journal_latency.build(SparkEngine(spark), journals))
    with DuckEngine() as engine:
        on_duckdb = tables(journal_latency.build(engine, journals))
    assert [row["messages"] for row in on_duckdb["groups"]] == [3]
    for table in ("groups", "minutes", "unmatched"):
        left, right = (
            [{name: value for name, value in row.items() if not name.endswith("Ms")} for row in one[table]]
            for one in (on_spark, on_duckdb)
        )
        assert left == right
