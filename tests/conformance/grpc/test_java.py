"""The official Java clients, unmodified, at our endpoint: what producers do, with and without TLS and credentials."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.grpc.java_clients import LIBRARIES, lines
from conformance.official.local_proxy import LocalProxy
from conformance.on_demand import ON_DEMAND
from conformance.servers.our_server import OurServer
from conformance.servers.raw_client import RawClient
from conformance.servers.server import Server

TOPICS = {"Normal": "NORMAL", "Fifo": "FIFO", "Delay": "DELAY", "Trans": "TRANSACTION"}
CHECKED_SOON = {"transactionTimeOut": 4000, "transactionCheckInterval": 4000}
"""The official broker needs both above 3 s, or asks about ended transactions too."""
SETTINGS = {**CHECKED_SOON, "recallMessageEnable": True}
USERS = {
    "authenticationEnabled": True,
    "authorizationEnabled": True,
    "initAuthenticationUser": '{"username":"admin","password":"12345678"}',
}
PLAIN = ("false", "-", "-")
TLS = ("true", "-", "-")

pytestmark = pytest.mark.timeout(400)


def make_topics(server: Server) -> None:
    with RawClient(server) as client:
        for name, kind in TOPICS.items():
            client.update_topic(name, 4, attributes=f"+message.type={kind}")
            client.update_group(f"group{name}")


@pytest.fixture(params=["ours", pytest.param("official-proxy", marks=ON_DEMAND)])
def server(request: pytest.FixtureRequest, peers: None, tmp_path: Path) -> Iterator[Server]:
    if request.param == "ours":
        made: Server = OurServer(tmp_path / "s", broker_conf=SETTINGS, options=("--grpc-port", "8081"))
    else:
        made = LocalProxy(tmp_path / "s", broker_conf=SETTINGS)
    with made:
        make_topics(made)
        yield made


@pytest.mark.parametrize("version", LIBRARIES)
@pytest.mark.parametrize("how", [PLAIN, TLS], ids=["plain", "tls"])
def test_producer(server: Server, version: str, how: tuple[str, ...]) -> None:
    steps = ["normal", "fifo", "delay", "transaction", "check", "wrongtype"]
    if version != "5.0.7":
        steps.append("recall")
    if how is TLS:
        steps = ["normal", "fifo"]
    printed = lines(server, version, "GrpcProducer", *how, *steps)
    expected: dict[str, list[str]] = {
        "normal": ["normal [async, n0, n1, n2, n3, n4]"],
        "fifo": ["fifo [f0, f1, f2, f3, f4, f5, f6, f7]"],
        "delay": ["delay receipt true", "delay [d] late true"],
        "transaction": ["transaction [committed]"],
        "check": ["check asked forgotten 1", "check [forgotten]"],
        "wrongtype": ["wrongtype refused by the client"],
        "recall": ["recall same true", "recall [kept]"],
    }
    assert printed == [line for step in steps for line in expected[step]]


@pytest.mark.parametrize("version", LIBRARIES)
def test_unknown_topic_is_made(peers: None, tmp_path: Path, version: str) -> None:
    with OurServer(tmp_path / "s", options=("--grpc-port", "8081")) as server:
        assert lines(server, version, "GrpcProducer", *PLAIN, "unknown") == ["unknown sent"]


@pytest.mark.parametrize("version", LIBRARIES)
def test_credentials(peers: None, tmp_path: Path, version: str) -> None:
    with OurServer(tmp_path / "s", broker_conf=USERS, options=("--grpc-port", "8081")) as server:
        right = lines(server, version, "GrpcProducer", "false", "admin", "12345678", "normal")
        assert right == ["normal [async, n0, n1, n2, n3, n4]"]
        wrong = lines(server, version, "GrpcProducer", "false", "admin", "wrong", "normal")
        assert wrong == ["normal refused UnauthorizedException 40100"]
        none = lines(server, version, "GrpcProducer", *PLAIN, "normal")
        assert none == ["normal refused UnauthorizedException 40100"]
