"""The jobs as commands of the program, for tests."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from pocketmq.cli.pipeline.command import pipeline


def run(*words: str) -> Result:
    return CliRunner().invoke(pipeline, words)


def tables(folder: Path, *words: str) -> Any:
    """What a job that finds something, or nothing, writes as JSON."""
    file = folder / "tables.json"
    ran = run(*words, "--quiet", "--json-file", str(file))
    assert ran.exit_code in (0, 1), ran.output
    return json.loads(file.read_text())
