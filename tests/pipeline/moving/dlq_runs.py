"""Runs of the job `dlq` for tests."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from pocketmq.cli.pipeline.command import pipeline

DEAD = "%DLQ%billing"


def run(rocketmq: Any, *words: str) -> Result:
    return CliRunner().invoke(pipeline, ["dlq", "-n", rocketmq.namesrv_addr, *words])


def tables(rocketmq: Any, tmp_path: Path, *words: str) -> Any:
    """What it wrote as JSON."""
    file = tmp_path / "dlq.json"
    ran = run(rocketmq, *words, "--quiet", "--json-file", str(file))
    assert ran.exit_code in (0, 1), ran.output
    return json.loads(file.read_text())
