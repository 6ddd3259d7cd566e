"""Jobs over a store in an object store, on both engines."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="the extra pocketmq[tables] is not installed")

from pipeline.tables.stores import COUNT, write_store
from spark.drivers import run_job
from spark.s3_server import object_store


@pytest.mark.on_demand
@pytest.mark.timeout(900)
def test_jobs_read_an_object_store(tmp_path: Path) -> None:
    """Keys and endpoint from the environment, or inside the URL: then nothing that is printed has them."""
    store = write_store(tmp_path / "store")
    printed = []

    def run(*words: str, env: dict[str, str] | None = None) -> Any:
        file = tmp_path / "tables.json"
        ran = run_job(os.environ | (env or {}), *words, "--json-file", str(file))
        assert ran.returncode in (0, 1), ran.stderr
        printed.append(ran.stdout + ran.stderr)
        return json.loads(file.read_text())

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
    assert all("hidden" not in text for text in printed)
