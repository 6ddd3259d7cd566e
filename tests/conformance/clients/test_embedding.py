"""Unmodified official Java programs against an embedded server: under `pocketmq exec`, and beside a test in Python.

No namespace is needed here: the server takes free ports, and the programs find it through NAMESRV_ADDR alone.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pocketmq.testing import EmbeddedServer, RocketMQ

from conformance.official.jars import prepare_home
from conformance.official.programs import CLIENT_HEAP, example

EXEC = (sys.executable, "-c", "from pocketmq.cli.main import main; main()", "exec", "--")
TIMEOUT_S = 120


def java(version: str, name: str, home: Path) -> list[str]:
    """The command line of an official example, without the server's address."""
    prepare_home(home)
    return example(version, name).command(home, CLIENT_HEAP, ())


def run(command: Sequence[str], environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


@pytest.fixture
def mq() -> Iterator[RocketMQ]:
    with EmbeddedServer() as server:
        yield RocketMQ(server)


@pytest.mark.parametrize("version", ["4.9", "5.5"])
def test_official_producer_runs_under_exec(peers: None, tmp_path: Path, version: str) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    environment.pop("NAMESRV_ADDR", None)
    ran = run([*EXEC, *java(version, "quickstart.Producer", tmp_path / "home")], environment)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "SEND_OK" in ran.stdout
    assert "Exception" not in ran.stdout + ran.stderr
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("version", ["4.9", "5.5"])
def test_python_sees_the_messages_of_an_official_producer(
    peers: None, mq: RocketMQ, tmp_path: Path, version: str
) -> None:
    environment = {**os.environ, "NAMESRV_ADDR": mq.namesrv_addr}
    ran = run(java(version, "quickstart.Producer", tmp_path / "home"), environment)
    messages = mq.messages("TopicTest")
    assert len(messages) == ran.stdout.count("SEND_OK") > 0
    assert messages[0].text == "Hello RocketMQ 0"
    assert {message.tags for message in messages} == {"TagA"}
    assert all(message.message_id in ran.stdout for message in messages if message.message_id)
