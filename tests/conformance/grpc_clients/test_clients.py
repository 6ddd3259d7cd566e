"""The official gRPC clients, unmodified: every kind of message, both consumers, retries to the end.

Python 5.1.2   also in the process of the broker      Go 5.1.4     sends over TLS unless it is said not to
Node 1.0.8     one topic a client                     Rust 5.0.0   no push consumer, no change of invisible times
Java 5.0.7, 5.2.0
"""

import subprocess
from pathlib import Path

import pytest

from conformance.grpc_clients.clients import (
    NAMES,
    PUSHING,
    able,
    expected,
    had,
    lines,
    make_places,
    start,
    step_lines,
)
from conformance.grpc_clients.consumer_side import endpoint_fixture
from conformance.servers.namespaces import clean_environment
from conformance.servers.raw_client import RawClient, wait_until
from conformance.servers.server import Names, Server

SETTINGS = {"transactionTimeOut": 4000, "transactionCheckInterval": 4000, "recallMessageEnable": True}
"""The official broker needs both times above 3 s, or asks about ended transactions too."""
TRIES = 3
"""The first delivery and the two retries of the groups."""

pytestmark = pytest.mark.timeout(900)


server = endpoint_fixture("module", lambda _: None, SETTINGS)


@pytest.fixture
def prefix(server: Server, names: Names) -> str:
    prefix = names("talk")
    with RawClient(server) as client:
        make_places(client, prefix)
    return prefix


@pytest.mark.parametrize("name", NAMES)
def test_a_client_sends_and_consumes(server: Server, name: str, prefix: str, tmp_path: Path) -> None:
    steps = able(name, "send", "simple", "push", "fifo", "order", "transaction", "check", "delay", "recall")
    steps += ["filters"] if name.startswith("java") else []
    assert lines(start(server, name, tmp_path, prefix, *steps)) == expected(name, steps)


@pytest.mark.parametrize("name", PUSHING)
@pytest.mark.parametrize(("step", "group"), [("dead", "bad"), ("deadfifo", "badfifo")])
def test_a_message_that_always_fails_becomes_a_dead_letter(
    server: Server, name: str, prefix: str, step: str, group: str, tmp_path: Path
) -> None:
    with start(server, name, tmp_path, prefix, step) as running:
        tries = 1 if (name, step) == ("node", "deadfifo") else TRIES
        running.wait_for("^TRIED", timeout=120, count=tries)
        with RawClient(server) as client:
            wait_until(lambda: client.max_offset(f"%DLQ%{prefix}_{group}", 0) == 1, "no dead letter", 60)
        tried = [line for line in running.output.splitlines() if line.startswith("TRIED bad")]
    assert len(tried) == tries


def test_the_python_client_talks_to_a_broker_in_its_own_process(tmp_path: Path) -> None:
    """Their event loops, protobuf pools and threads agree."""
    command, environment = had("python")
    steps = ["send", "simple", "push", "fifo", "order", "transaction"]
    done = subprocess.run(
        [*command, "here", "plain", "-", "-", "here", *steps],
        cwd=tmp_path,
        env=clean_environment(HOME=str(tmp_path), **environment),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert step_lines(done.stdout) == expected("python", steps)
    assert "LOGGED True" in done.stdout
    assert "BlockingIOError" not in done.stderr
    assert "Traceback" not in done.stderr
