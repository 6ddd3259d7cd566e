"""The official gRPC clients: over TLS, and with users, passwords and rights.

Go and Java accept any certificate. Python and Node check it: they are told to trust the authority that signed it.
"""

from pathlib import Path

import pytest

from client_certificates import FILES
from conformance.access.access_rows import AUTH_SETTINGS, SigningClient
from conformance.grpc.access import PROXY
from conformance.grpc_clients.clients import (
    NAMES,
    PUSHING,
    able,
    expected,
    lines,
    make_places,
    start,
)
from conformance.grpc_clients.consumer_side import endpoint_fixture
from conformance.servers.server import Names, Server

SHOP, WRONG, GUEST = ("shop", "shoppassword"), ("shop", "wrongpassword"), ("guest", "guestpassword")
"""A user with rights, the same with a wrong password, a user without a right."""

pytestmark = pytest.mark.timeout(900)


def prepare(server: Server) -> None:
    with SigningClient(server) as client:
        for name, password in (SHOP, GUEST):
            client.make_user(name, password)
        client.allow("shop", "Topic:*", "Group:*")


TLS = {
    "tlsTestModeEnable": False,
    "tlsCertPath": str(FILES / "server.pem"),
    "tlsKeyPath": str(FILES / "server.key"),
}
server = endpoint_fixture("module", prepare, AUTH_SETTINGS, {**PROXY, **TLS})


@pytest.fixture
def prefix(server: Server, names: Names) -> str:
    prefix = names("talk")
    with SigningClient(server) as client:
        make_places(client, prefix)
    return prefix


@pytest.mark.parametrize("name", PUSHING)
def test_over_tls(server: Server, name: str, prefix: str, tmp_path: Path) -> None:
    trusted = {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(FILES / "ca.pem")}
    steps = ["send", "simple", "push", "order"]
    running = start(server, name, tmp_path, prefix, *steps, transport="tls", user=SHOP, **trusted)
    assert lines(running) == expected(name, steps)


@pytest.mark.parametrize("name", NAMES)
def test_a_user_with_rights(server: Server, name: str, prefix: str, tmp_path: Path) -> None:
    steps = able(name, "send", "simple", "push", "fifo")
    assert lines(start(server, name, tmp_path, prefix, *steps, user=SHOP)) == expected(name, steps)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("user", [WRONG, GUEST], ids=["wrong password", "no right"])
def test_a_user_who_is_refused(
    server: Server, name: str, prefix: str, user: tuple[str, str], tmp_path: Path
) -> None:
    steps = able(name, "send", "simple", "push")
    said = lines(start(server, name, tmp_path, prefix, *steps, user=user))
    assert {step: words[:1] for step, words in said.items()} == {step: ["refused"] for step in steps}
    with SigningClient(server) as client:
        assert [client.max_offset(f"{prefix}_Normal", queue) for queue in range(4)] == [0] * 4
