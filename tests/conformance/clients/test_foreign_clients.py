"""Clients that are not Java: C++ (PyPI `rocketmq` 0.4.4) and JavaScript (npm `ali-ons` 3).

Each sends ten messages, consumes them, and gives one back. The same program runs on ours and on the official broker of
4.9, the line these clients were written for. The packages are fetched once; if that fails, the test is skipped.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.clients.foreign import cpp_packages, node_packages
from conformance.official.jars import PeersUnavailable
from conformance.on_demand import ON_DEMAND
from conformance.servers.namespaces import clean_environment
from conformance.servers.processes import Running
from conformance.servers.raw_client import RawClient
from conformance.servers.server import NAMESRV_ADDR, Server

HERE = Path(__file__).parent
SECONDS = 150.0


def cpp_client() -> tuple[list[str], dict[str, str]]:
    return [sys.executable, str(HERE / "cpp_client.py")], {"PYTHONPATH": str(cpp_packages())}


def node_client() -> tuple[list[str], dict[str, str]]:
    return ["node", str(HERE / "node_client.js")], {"NODE_PATH": str(node_packages())}


CLIENTS = {"cpp": cpp_client, "node": node_client}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("server_side", ["ours", pytest.param("official-4.9", marks=ON_DEMAND)])
def test_ten_messages_are_sent_consumed_and_one_sent_back(
    client: str,
    server_side: str,
    session_server: Callable[[str], Server],
    names: Callable[[str], str],
    tmp_path: Path,
) -> None:
    try:
        argv, environment = CLIENTS[client]()
    except PeersUnavailable as why:
        pytest.skip(str(why))
    server = session_server(server_side)
    topic = names("topic")
    with RawClient(server) as raw:
        raw.update_topic(topic, 4)  # the JavaScript client does not wait until the topic exists
    running = Running(
        server.namespace,
        [*argv, NAMESRV_ADDR, topic, names("group")],
        tmp_path / f"{client}.out",
        name=client,
        env=clean_environment(HOME=str(tmp_path), **environment),
    )
    with running:
        running.finish(SECONDS)
    lines = running.output.splitlines()
    assert lines[-1:] == ["DONE"], running.output
    assert sum(line.startswith("SENT") and line.endswith(("True", "true")) for line in lines) >= 8
    seen = {line for line in lines if line.startswith("SEEN")}
    assert {line.split()[2] for line in seen} == {str(at) for at in range(10)}
    assert "AGAIN" in lines
    assert any(line.startswith("SEEN body 3 odd key3") for line in seen)
