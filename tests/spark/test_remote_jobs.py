"""Jobs over a store behind a URL: both engines, and an object store."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("duckdb", reason="the extra pocketmq[tables] is not installed")

from pocketmq.pipeline.jobs import audit, duplicates, find, latest, sql, stats
from pocketmq.pipeline.sql.duckdb_engine import DuckEngine
from pocketmq.pipeline.sql.message_input import MessageInput
from pocketmq.pipeline.sql.spark_engine import SparkEngine
from pyspark.sql import SparkSession

from pipeline.jobs.seeded_store import write_seeded_store
from pipeline.tables.stores import COUNT, write_store
from spark.drivers import JOB
from spark.s3_server import MotoUnavailableError, object_store
from spark.test_sql_jobs import tables

JOBS: dict[str, Callable[[Any, MessageInput], Any]] = {
    "audit": lambda engine, one: audit.build(engine, one.store or ""),
    "duplicates": lambda engine, one: duplicates.build(engine, one),
    "stats": lambda engine, one: stats.build(engine, one, keys=5),
    "find": lambda engine, one: find.build(engine, one, find.Wanted(message_key="größe")),
    "latest": lambda engine, one: latest.build(engine, one, deleted_by="A"),
    "sql": lambda engine, one: sql.build(
        engine,
        "select topic, queueId, count(*) as n, max(physicalOffset) as p from consumequeue group by 1, 2 order by 1, 2",
        one,
        shows_damage=True,
    ),
    "offsets": lambda engine, one: sql.build(
        engine,
        'select "group", topic, queueId from consumer_offsets order by 1, 2, 3'
        if engine.name == "duckdb"
        else "select `group`, topic, queueId from consumer_offsets order by 1, 2, 3",
        one,
    ),
}


@pytest.mark.parametrize("job", JOBS)
def test_both_engines_read_a_url_alike(spark: SparkSession, tmp_path: Path, job: str) -> None:
    (tmp_path / "store").mkdir()
    source = MessageInput(store=f"file://{write_store_of(job, tmp_path / 'store')}")
    on_spark = JOBS[job](SparkEngine(spark), source)
    with DuckEngine() as engine:
        on_duckdb = JOBS[job](engine, source)
        assert tables(on_spark) == tables(on_duckdb)
        assert on_spark.findings == on_duckdb.findings


def write_store_of(job: str, root: Path) -> Path:
    if job == "offsets":
        return write_store(root)
    write_seeded_store(root, 1)
    return root


@pytest.mark.on_demand
@pytest.mark.timeout(900)
def test_jobs_read_an_object_store(tmp_path: Path) -> None:
    """Keys and endpoint from the environment, or inside the URL: then nothing that is printed has them."""
    store = write_store(tmp_path / "store")
    printed = []

    def run(*words: str, env: dict[str, str] | None = None) -> Any:
        file = tmp_path / "tables.json"
        ran = subprocess.run(
            [sys.executable, "-c", JOB, "pipeline", *words, "--json-file", str(file)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **(env or {})},
        )
        assert ran.returncode in (0, 1), ran.stderr
        printed.append(ran.stdout + ran.stderr)
        return json.loads(file.read_text())

    try:
        with object_store(tmp_path) as objects:
            url = objects.upload(store, "store")
            with_keys = objects.url_with_keys(url)
            for engine in ("duckdb", "spark"):
                found = run("stats", "--store", url, "--engine", engine, env=objects.env)
                assert sum(row["messages"] for row in found["topics"]) == COUNT
                found = run("find", "--key", "k3", "--store", with_keys, "--engine", engine)
                assert [row["keys"] for row in found["messages"]] == ["k3 all"]
                found = run("audit", "--store", with_keys, "--engine", engine)
                assert sum(row["records"] for row in found["queues"]) == COUNT
            found = run("compare", with_keys, str(store))
            assert sum(row["leftMessages"] for row in found["topics"]) == COUNT
    except MotoUnavailableError as missing:
        pytest.skip(str(missing))
    assert all("hidden" not in text for text in printed)
