"""A store for the tests of jobs, and a DuckDB engine."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.tables.stores import write_store


@pytest.fixture(scope="session", autouse=True)
def _duckdb() -> None:
    pytest.importorskip("duckdb", reason="the extra pocketmq[tables] is not installed")


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("jobs") / "store")


@pytest.fixture
def engine() -> Iterator[Any]:
    from pocketmq.pipeline.jobs.sql.duckdb_engine import DuckEngine

    with DuckEngine() as engine:
        yield engine
