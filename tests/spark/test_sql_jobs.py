"""A job in SQL gives the same rows on Spark as on DuckDB: the text is one."""

import asyncio
import os
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="the extra pocketmq[tables] is not installed")

import msgspec
from pocketmq.pipeline.errors import OptionError
from pocketmq.pipeline.jobs.answers import audit, compare, duplicates, find, latest, sql, stats
from pocketmq.pipeline.jobs.behaviour import job as behaviour
from pocketmq.pipeline.jobs.behaviour import latency
from pocketmq.pipeline.jobs.moving import dlq
from pocketmq.pipeline.jobs.moving.dead_letters import Wanted
from pocketmq.pipeline.jobs.sql.duckdb_engine import DuckEngine
from pocketmq.pipeline.jobs.sql.message_input import MessageInput
from pocketmq.pipeline.jobs.sql.spark_engine import SparkEngine
from pocketmq.testing import RocketMQ
from pyspark.sql import SparkSession

from grpc_companion import record_grpc_calls
from pipeline.jobs.seeded_store import write_seeded_store
from pipeline.jobs.test_behaviour import record_two_owners
from pipeline.jobs.test_latency import send_traces
from pipeline.tables.stores import BEGIN_MS, write_store


def plain(value: Any) -> Any:
    """Times without their zone: Spark's rows have none."""
    if isinstance(value, float):
        return round(value, 9)
    return value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value


def tables(report: Any) -> dict[str, Any]:
    return {
        section.name: [{name: plain(value) for name, value in row.items()} for row in section.frame.rows()]
        for section in report.sections
    }


SEEDS = {"folder": (1, 2), "url": (3, 4)}
JOBS: dict[str, Callable[[Any, MessageInput, MessageInput], Any]] = {
    "audit": lambda engine, one, _: audit.build(engine, one.store or ""),
    "audit of topics": lambda engine, one, _: audit.build(engine, one.store or "", topics="Orders,Gone"),
    "duplicates": lambda engine, one, _: duplicates.build(engine, one),
    "duplicates by keys": lambda engine, one, _: duplicates.build(engine, one, by="keys"),
    "stats": lambda engine, one, _: stats.build(engine, one, keys=10),
    "stats of a time": lambda engine, one, _: stats.build(
        engine,
        msgspec.structs.replace(one, since_ms=BEGIN_MS + 500_000, until_ms=BEGIN_MS + 4_000_000),
        keys=10,
    ),
    "find a key": lambda engine, one, _: find.build(engine, one, find.Wanted(message_key="größe")),
    "find a text": lambda engine, one, _: find.build(engine, one, find.Wanted(text="größe ü")),
    "find a tag with a quote": lambda engine, one, _: find.build(
        engine, one, find.Wanted(tag="it's"), limit=7
    ),
    "find a text with a backslash": lambda engine, one, _: find.build(engine, one, find.Wanted(text="a\\b")),
    "find by all conditions": lambda engine, one, _: find.build(
        engine, one, find.Wanted(message_key="k1", text="i", tag="A", where="queueId in (0, 1)")
    ),
    "find by a condition": lambda engine, one, _: find.build(
        engine, one, find.Wanted(where="reconsumeTimes > 0 or tags is null"), limit=1000
    ),
    "latest": lambda engine, one, _: latest.build(engine, one, deleted_by="A"),
    "latest by a property": lambda engine, one, _: latest.build(engine, one, by="properties['orderId']"),
    "compare": lambda engine, one, other: compare.build(
        engine, one, other, has_queues=True, has_minutes=True
    ),
    "dlq": lambda engine, one, _: dlq.build(engine, one, Wanted(is_retrying_shown=True), limit=1000),
    "dlq of an origin": lambda engine, one, _: dlq.build(engine, one, Wanted(origin="Bills", tag="B")),
    "sql": lambda engine, one, _: sql.build(
        engine,
        "select status, topic, tags, count(*) as n, sum(bodyCRC) as crc, sum(octet_length(body)) as bytes, "
        "min(bornTimestamp) as born, max(bornHost) as host from messages group by status, topic, tags "
        "order by status, topic, tags nulls first",
        one,
        shows_damage=True,
    ),
    "sql of units": lambda engine, one, _: sql.build(
        engine,
        "select topic, queueId, count(*) as n, max(physicalOffset) as p from consumequeue group by 1, 2 order by 1, 2",
        one,
    ),
    "sql of offsets": lambda engine, one, _: sql.build(
        engine, "select o.group, topic, queueId, o.offset from consumer_offsets as o order by 1, 2, 3", one
    ),
}


@pytest.fixture(scope="module", params=["folder", "url"])
def seeded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[MessageInput, MessageInput]:
    """Two stores of records of every kind, in folders or behind URLs."""
    folder = tmp_path_factory.mktemp("seeded")
    seeds = random.sample(range(1000), 2) if os.environ.get("POCKETMQ_NIGHTLY") else SEEDS[request.param]
    print(f"seeds {seeds}")
    scheme = "file://" if request.param == "url" else ""
    one, other = (
        MessageInput(store=f"{scheme}{write_seeded_store(folder / str(seed), seed)}") for seed in seeds
    )
    return one, other


@pytest.mark.parametrize("job", JOBS)
def test_both_engines_see_records_of_every_kind_alike(
    spark: SparkSession, seeded: tuple[MessageInput, MessageInput], monkeypatch: pytest.MonkeyPatch, job: str
) -> None:
    monkeypatch.setattr(dlq, "time", SimpleNamespace(time=lambda: BEGIN_MS / 1000 + 86_400))
    on_spark = JOBS[job](SparkEngine(spark), *seeded)
    found = tables(on_spark)
    with DuckEngine() as engine:
        on_duckdb = JOBS[job](engine, *seeded)
        assert found == tables(on_duckdb)
        assert on_spark.findings == on_duckdb.findings
    assert any(found.values()), "the store has something for every job"


def test_a_wrong_text_is_an_option_error_in_one_line(spark: SparkSession) -> None:
    for text in ("select nothing from nowhere", "selekt 1"):
        with pytest.raises(OptionError, match="SQL: ") as raised:
            SparkEngine(spark).sql(text)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("build", [behaviour.build, latency.build_of_journals])
def test_reports_of_journals_are_the_same_on_both_engines(
    spark: SparkSession, tmp_path: Path, build: Callable[[Any, list[str]], Any]
) -> None:
    journals = [str(tmp_path / "one"), str(tmp_path / "two")]
    record_two_owners(Path(journals[0]))
    asyncio.run(record_grpc_calls(Path(journals[1])))
    on_spark = build(SparkEngine(spark), journals)
    found = tables(on_spark)
    with DuckEngine() as engine:
        on_duckdb = build(engine, journals)
        assert found == tables(on_duckdb)
        assert (on_spark.findings, on_spark.drawings) == (on_duckdb.findings, on_duckdb.drawings)
    assert any(found.values())


def test_latency_of_traces_is_the_same_on_both_engines(spark: SparkSession, rocketmq: RocketMQ) -> None:
    source = MessageInput(namesrv_addr=rocketmq.namesrv_addr, topics=send_traces(rocketmq))
    on_spark = tables(latency.build(SparkEngine(spark), source))
    with DuckEngine() as engine:
        assert on_spark == tables(latency.build(engine, source))
    assert on_spark["groups"]


@pytest.mark.parametrize("kept_here", [0, 20_000])
def test_a_small_table_has_its_rows_and_types_whether_they_are_few_or_many(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, kept_here: int
) -> None:
    monkeypatch.setattr("pocketmq.pipeline.jobs.sql.spark_engine.KEPT_HERE", kept_here)
    text = "select id, cast(id as string) as word, timestamp_millis(id) as time, nullif(id, 3) as gap from range(9)"
    engine = SparkEngine(spark)
    engine.keep("kept", text, is_small=True)
    kept, computed = engine.sql("select * from kept").frame, engine.sql(text).frame
    assert kept.schema.simpleString() == computed.schema.simpleString()
    assert sorted(kept.collect()) == sorted(computed.collect())
    assert spark.catalog.isCached("kept") == (kept_here == 0)
    spark.catalog.clearCache()


def test_stores_of_several_brokers_are_one_on_both_engines(spark: SparkSession, tmp_path: Path) -> None:
    stores = tuple((name, str(write_store(tmp_path / name, count))) for name, count in (("a", 60), ("b", 40)))
    source = MessageInput(stores=stores)
    with DuckEngine() as duck:
        for engine in (duck, SparkEngine(spark)):
            engine.open_messages("messages", source, ("topic", "brokerName"))
            counted = engine.sql(
                "select brokerName, count(*) as n from messages group by 1 order by 1"
            ).rows()
            assert [(row["brokerName"], row["n"]) for row in counted] == [("a", 60), ("b", 40)]
            report = audit.build(engine, dict(stores))
            assert report.findings == []
            (queues,) = [section.frame for section in report.sections if section.name == "queues"]
            assert {row["brokerName"] for row in queues.rows()} == {"a", "b"}
