"""Runs of the job `dlq` for tests."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from pipeline import commands

pytest.importorskip("duckdb", reason="the extra pocketmq[tables] is not installed")

DEAD = "%DLQ%billing"


def run(rocketmq: Any, *words: str) -> Result:
    return commands.run("dlq", "-n", rocketmq.namesrv_addr, *words)


def tables(rocketmq: Any, tmp_path: Path, *words: str) -> Any:
    """What it wrote as JSON."""
    return commands.tables(tmp_path, "dlq", "-n", rocketmq.namesrv_addr, *words)
