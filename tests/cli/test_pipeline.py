"""`pocketmq pipeline`: jobs are imported when they are used, and a missing extra is reported in one line."""

import sys
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from pocketmq.cli.main import main
from pocketmq.cli.pipeline.command import JOBS

from processes import python


def test_every_job_is_a_command_with_help() -> None:
    for module in JOBS.values():
        assert isinstance(import_module(module).main, click.Command)
    for job in JOBS:
        ran = CliRunner().invoke(main, ["pipeline", job, "--help"])
        assert ran.exit_code == 0, ran.output
        assert "Usage:" in ran.output


def test_nothing_of_spark_is_imported_for_the_list_of_jobs() -> None:
    program = (
        "from pocketmq.cli.main import main; import sys; main(['pipeline', '--help'], standalone_mode=False);"
    )
    program += "assert not {'pyspark', 'pyarrow', 'numpy'} & set(sys.modules)"
    assert python("-c", program).returncode == 0


def test_a_missing_extra_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pocketmq.pipeline.spark.session.session", raising=False)
    for name in {"pyspark", *(name for name in sys.modules if name.startswith("pyspark."))}:
        monkeypatch.setitem(sys.modules, name, None)
    ran = CliRunner().invoke(
        main, ["pipeline", "audit", "--store", "/nothing", "--engine", "spark", "--quiet"]
    )
    assert ran.exit_code == 2
    assert "pocketmq[spark]" in ran.output
    assert "Traceback" not in ran.output


@pytest.mark.parametrize(
    "words",
    [
        "stats --store {0}",
        "lag --store {0}",
        "mirror -n a:1 --to-namesrv b:1 --topics T --once",
        "ingest -n a:1 --topics T --to d --checkpoint c",
    ],
)
def test_each_job_names_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    (tmp_path / "commitlog").mkdir()
    for name in ("numpy", "pyarrow", "duckdb", "pyspark"):
        monkeypatch.setitem(sys.modules, name, None)
    ran = CliRunner().invoke(main, ["pipeline", *words.format(tmp_path).split()])
    assert ran.exit_code == 2, ran.output
    assert "pip install 'pocketmq[" in ran.output
