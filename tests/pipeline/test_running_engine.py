"""Jobs find the engine that `pocketmq pipeline up` keeps running, and only while it runs."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("pyspark")

from pocketmq.cli.pipeline import up
from pocketmq.pipeline.jobs.run import _engine
from pocketmq.pipeline.session import engine
from pocketmq.pipeline.session.running_engine import announce, engine_file, running_engine, withdraw


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@pytest.fixture
def address() -> Iterator[str]:
    """The address of a port that answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"sc://localhost:{listener.getsockname()[1]}/;token=t"


def test_an_engine_is_found_until_it_withdraws(address: str) -> None:
    assert running_engine() is None
    announce(address)
    assert running_engine() == address
    assert engine_file().stat().st_mode & 0o077 == 0
    withdraw()
    assert running_engine() is None


def test_without_a_folder_of_the_session_the_file_is_in_the_users_own_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, address: str
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    announce(address)
    assert engine_file() == tmp_path / "cache" / "pocketmq" / "engine.json"
    assert engine_file().parent.stat().st_mode & 0o077 == engine_file().stat().st_mode & 0o077 == 0
    assert running_engine() == address


def test_an_engine_that_was_killed_is_not_found(address: str) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    engine_file().write_text(json.dumps({"address": address, "pid": ended.pid}))
    assert running_engine() is None


@pytest.mark.parametrize("nowhere", ["sc://127.0.0.1:1", "sc://127.0.0.1:x", "sc://", "sc://127.0.0.1:99999"])
def test_an_engine_whose_jvm_has_ended_is_not_found(nowhere: str) -> None:
    """The process that started it may live, or its number may be another's: a job would wait for minutes."""
    announce(nowhere)
    assert running_engine() is None


def test_a_port_that_no_host_has_is_not_taken_for_another(address: str) -> None:
    """A number beyond 65,535 reaches what listens at the rest."""
    host, _, rest = address.rpartition(":")
    port, _, token = rest.partition("/")
    announce(f"{host}:{int(port) + 65_536}/{token}")
    assert running_engine() is None


@pytest.mark.parametrize("content", ["", "[]", '{"pid": "1"}', '{"address": 3, "pid": 1}'])
def test_a_file_that_cannot_be_read_is_no_engine(content: str) -> None:
    engine_file().write_text(content)
    assert running_engine() is None
    withdraw()
    assert engine_file().exists(), "it is not the file of this process"


def test_a_job_uses_the_engine_unless_something_else_was_chosen(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    for name in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    announce(address)
    assert _engine(None, {}) == address
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
