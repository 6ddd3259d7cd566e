"""The official gRPC clients that are not Java, unmodified: each sends, receives, acknowledges, keeps order, commits.

    Python 5.1.2   also in the process of the broker      Go 5.1.4     with TLS and without
    Node 1.0.8     one topic a client                      Rust 5.0.0   no push consumer, no change of invisible times

The programs are in `programs/`; packages are fetched, and programs built, at their first use. A client that cannot be
had is skipped. Every program prints the same lines.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from conformance.clients.foreign import (
    go_program,
    grpc_node_packages,
    grpc_python_packages,
    rust_program,
)
from conformance.grpc_clients.consumer_side import ENDPOINT, make_endpoint, make_group, make_topic
from conformance.official.jars import PeersUnavailable
from conformance.on_demand import ON_DEMAND
from conformance.servers.namespaces import clean_environment
from conformance.servers.processes import Running
from conformance.servers.raw_client import RawClient
from conformance.servers.server import Server

PROGRAMS = Path(__file__).parent / "programs"
ONCE = [f"m{number}/1" for number in range(10)]
NORMAL = [f"m{number}" for number in range(10)]
SAID = {
    "NORMAL": NORMAL,
    "FIFO": [f"f{number}" for number in range(6)],
    "TRANSACTION": ["committed"],
    "PUSHED": sorted([*ONCE, "m5/2"]),
}

pytestmark = pytest.mark.timeout(900)

Client = tuple[list[str], dict[str, str]]
"""Command and environment."""


def python_client() -> Client:
    return [sys.executable, str(PROGRAMS / "talk.py"), ENDPOINT], {"PYTHONPATH": str(grpc_python_packages())}


def python_beside_the_broker() -> Client:
    command, environment = python_client()
    return [*command[:-1], "here"], environment


def node_client() -> Client:
    return ["node", str(PROGRAMS / "talk.js"), ENDPOINT], {"NODE_PATH": str(grpc_node_packages())}


def go_client(transport: str) -> Client:
    return [str(go_program(PROGRAMS / "go_talk")), ENDPOINT, transport], {}


def rust_client() -> Client:
    return [str(rust_program(PROGRAMS / "rust", "grpctalk")), ENDPOINT], {}


CLIENTS: Mapping[str, Callable[[], Client]] = {
    "python": python_client,
    "node": node_client,
    "go-plain": lambda: go_client("plain"),
    "go-tls": lambda: go_client("tls"),
    "rust": rust_client,
}


@pytest.fixture(params=["ours", pytest.param("official-proxy", marks=ON_DEMAND)])
def server(request: pytest.FixtureRequest, peers: None, tmp_path: Path) -> Iterator[Server]:
    with make_endpoint(request.param, tmp_path / "s") as made:
        with RawClient(made) as client:
            for name, kind in (("NormalT", "NORMAL"), ("FifoT", "FIFO"), ("TransT", "TRANSACTION")):
                make_topic(client, name, kind)
            for group in ("simple", "trans", "push"):
                make_group(client, group)
            make_group(client, "fifo", consumeMessageOrderly=True)
        yield made


@pytest.mark.parametrize(
    "name",
    ["python", "node", *(pytest.param(name, marks=ON_DEMAND) for name in ("go-plain", "go-tls", "rust"))],
)
def test_a_client_sends_and_consumes(server: Server, name: str, tmp_path: Path) -> None:
    client = _had(CLIENTS[name])
    if name == "rust":
        _give_a_mac_address(server, tmp_path)
    said = _said(server, name, client, tmp_path)
    expected = {key: bodies for key, bodies in SAID.items() if name != "rust" or key != "PUSHED"}
    assert said == expected


def test_the_python_client_talks_to_a_broker_in_its_own_process(tmp_path: Path) -> None:
    command, environment = _had(python_beside_the_broker)
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=clean_environment(HOME=str(tmp_path), **environment),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert _lines(done.stdout) == SAID


def _had(client: Callable[[], Client]) -> Client:
    try:
        return client()
    except PeersUnavailable as why:
        pytest.skip(str(why))


def _said(server: Server, name: str, client: Client, home: Path) -> dict[str, list[str]]:
    command, environment = client
    running = Running(
        server.namespace,
        command,
        home / f"{name}.out",
        name=name,
        env=clean_environment(HOME=str(home), **environment),
        separate_errors=True,
    )
    with running:
        running.wait_for("^DONE$", timeout=300)
    return _lines(running.output)


def _lines(text: str) -> dict[str, list[str]]:
    words = [line.split() for line in text.splitlines()]
    return {first: rest for first, *rest in (line for line in words if line) if first in SAID}


def _give_a_mac_address(server: Server, home: Path) -> None:
    """The Rust client makes its message ids of one; the loopback interface has none."""
    add = ["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"]
    with Running(server.namespace, add, home / "ip.out") as running:
        if running.finish(10) != 0:
            pytest.skip(f"no interface with a MAC address: {running.output.strip()}")
