"""Jobs find the engine that `pocketmq pipeline up` keeps running, and only while it runs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("pyspark")

from pocketmq.cli.pipeline import up
from pocketmq.pipeline.jobs.run import _engine
from pocketmq.pipeline.session import engine
from pocketmq.pipeline.session.running_engine import announce, engine_file, running_engine, withdraw

ADDRESS = "sc://127.0.0.1:15002"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def test_an_engine_is_found_until_it_withdraws() -> None:
    assert running_engine() is None
    announce(ADDRESS)
    assert running_engine() == ADDRESS
    assert engine_file().stat().st_mode & 0o077 == 0
    withdraw()
    assert running_engine() is None


def test_an_engine_that_was_killed_is_not_found() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    engine_file().write_text(json.dumps({"address": ADDRESS, "pid": ended.pid}))
    assert running_engine() is None


@pytest.mark.parametrize("content", ["", "[]", '{"pid": "1"}', '{"address": 3, "pid": 1}'])
def test_a_file_that_cannot_be_read_is_no_engine(content: str) -> None:
    engine_file().write_text(content)
    assert running_engine() is None
    withdraw()
    assert engine_file().exists(), "it is not the file of this process"


def test_a_job_uses_the_engine_unless_something_else_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    announce(ADDRESS)
    assert _engine(None, {}) == ADDRESS
    assert _engine("2g", {}) is None
    assert _engine(None, {"spark.a": "1"}) is None
    monkeypatch.setitem(os.environ, "SPARK_REMOTE", "sc://elsewhere")
    assert _engine(None, {}) is None


def test_an_engine_that_does_not_start_is_one_line_and_code_2(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Spark reports a master that nothing answers as a stopped context."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("Cannot call methods on a stopped SparkContext.\n\tat a.java.Stack")

    monkeypatch.setattr(engine, "pocketmq_session", fail)
    monkeypatch.setattr(up, "NEEDED", ())
    ran = CliRunner().invoke(up.main, ["--master", "spark://h:1", "--port", "0"])
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == (
        "pocketmq: Spark does not start with --master spark://h:1 and --memory 1g: "
        "Cannot call methods on a stopped SparkContext.\n"
    )
    assert not engine_file().exists()
