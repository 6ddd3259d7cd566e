"""Access control and TLS: Java clients sign and encrypt, mqadmin creates users and ACLs.

The transcripts "keys" and "users" compare it request by request (`tests/conformance/requests/conversations.py`).
"""

from pathlib import Path

import pytest

from client_certificates import FILES
from conformance import JAVA
from conformance.access import access_rows
from conformance.official.programs import Programs, compile_java
from conformance.on_demand import ON_DEMAND
from conformance.requests.conversations import with_plain_acl
from conformance.servers.namespaces import Namespace
from conformance.servers.our_server import OurServer
from conformance.servers.server import Server

TRAFFIC = JAVA / "GuardedTraffic.java"
ROOT = Path(__file__).parents[3]
PLAIN_ACL = {"aclEnable": True}
EXPLAIN_FIRST_POSITION = 30001

pytestmark = ON_DEMAND


def test_rules_are_those_of_the_official_headers(peers: None, tmp_path: Path) -> None:
    """broker/access/access_rules.tsv against the annotations in the jars of 5.5.0."""
    program = compile_java("5.5", JAVA / "AccessRules.java")
    with Namespace() as namespace:
        programs = Programs(namespace, tmp_path, "")
        lines = [line.split("\t") for line in programs.run_java(program).lines if line[:1].isdigit()]
        programs.close()
    official = {
        int(code): ("cluster" if resource == "Cluster" else "", actions, fields)
        for code, resource, actions, fields in lines
        if resource == "Cluster" or fields
    }
    rows = (ROOT / "broker" / "access" / "access_rules.tsv").read_text("utf-8").splitlines()[1:]
    ours = {int(code): (cluster, actions, fields) for code, cluster, actions, fields in map(_cells, rows)}
    assert ours.keys() - official.keys() == {EXPLAIN_FIRST_POSITION}, "a request of our own"
    assert official.items() <= ours.items()
    assert len(official) > 80


def _cells(row: str) -> list[str]:
    return row.split("\t")


def traffic(server: Server, tool: str, *args: str, java_opts: tuple[str, ...] = ()) -> list[str]:
    """Lines the Java client printed."""
    return server.programs.run_java(compile_java(tool, TRAFFIC), *args, java_opts=java_opts).lines


@pytest.mark.parametrize("tool", ["4.9", "5.5"])
def test_java_clients_with_access_keys(peers: None, tmp_path: Path, tool: str) -> None:
    ours = OurServer(tmp_path / "ours", line="4.9", broker_conf=PLAIN_ACL)
    with_plain_acl(ours)
    with ours as server:
        lines = traffic(server, tool, "both", "good_group", "adminadmin", "12345678")
        assert lines[-1] == "DONE", lines
        lines = traffic(server, tool, "both", "good_group", "adminadmin", "wrongsecret")
        assert "Check signature failed for accessKey=adminadmin" in lines[-1]
        lines = traffic(server, tool, "both", "good_group", "-", "-")
        assert "No accessKey is configured" in lines[-1]


def test_mqadmin_makes_users_and_java_clients_use_them(peers: None, tmp_path: Path) -> None:
    settings = access_rows.AUTH_SETTINGS
    server = OurServer(tmp_path / "ours", broker_conf=settings)
    with server:
        tools = server.programs.home / "conf" / "tools.yml"
        tools.parent.mkdir(parents=True, exist_ok=True)
        tools.write_text("accessKey: root\nsecretKey: rootpassword\n", encoding="utf-8")
        admin = server.programs.admin_shell("5.5")
        broker = "127.0.0.1:10911"
        assert "success" in admin("updateTopic", "-b", broker, "-t", "Orders", "-r", "2", "-w", "2")
        assert "success" in admin(
            "createUser", "-b", broker, "-u", "shop", "-p", "shoppassword", "-t", "Normal"
        )
        lines = traffic(server, "5.5", "Orders", "billing", "shop", "shoppassword")
        assert "User:shop has no permission to access Topic:Orders" in lines[-1]
        rights = ("-b", broker, "-s", "User:shop", "-a", "Pub,Sub", "-d", "Allow")
        assert "success" in admin("createAcl", *rights, "-r", "Topic:Orders,Group:billing")
        assert traffic(server, "5.5", "Orders", "billing", "shop", "shoppassword")[-1] == "DONE"
        assert "Topic:Orders" in admin("listAcl", "-b", broker)
        assert "shop" in admin("getUser", "-b", broker, "-u", "shop")
        assert "success" in admin("updateUser", "-b", broker, "-u", "shop", "-s", "disable")
        lines = traffic(server, "5.5", "Orders", "billing", "shop", "shoppassword")
        assert "User:shop is disabled." in lines[-1]
        server.stop()
        assert "rootpassword" not in server.process_errors()
        assert "shoppassword" not in server.process_errors()
        server.start()
        lines = traffic(server, "5.5", "Orders", "billing", "shop", "shoppassword")
        assert "User:shop is disabled." in lines[-1], "users are kept"


# -- TLS

TLS = ("-Dtls.enable=true",)


@pytest.mark.parametrize("tool", ["4.9", "5.5"])
def test_java_clients_with_tls_and_without_on_one_port(peers: None, tmp_path: Path, tool: str) -> None:
    with OurServer(tmp_path / "ours", line=tool) as server:
        assert traffic(server, tool, "Secret", "g1", "-", "-", java_opts=TLS)[-1] == "DONE"
        assert traffic(server, tool, "Open", "g2", "-", "-")[-1] == "DONE"


def test_enforcing_refuses_plain_connections(peers: None, tmp_path: Path) -> None:
    with OurServer(tmp_path / "ours", broker_conf={"tls.server.mode": "enforcing"}) as server:
        assert traffic(server, "5.5", "Secret", "g1", "-", "-", java_opts=TLS)[-1] == "DONE"
        assert traffic(server, "5.5", "Secret", "g1", "-", "-")[-1].startswith("REFUSED")
        with pytest.raises((ConnectionError, OSError)):
            server.call(28)


def test_certificates_of_both_sides_are_checked(peers: None, tmp_path: Path) -> None:
    settings = {
        "tls.test.mode.enable": False,
        "tls.server.mode": "enforcing",
        "tls.server.certPath": FILES / "client.pem",
        "tls.server.keyPath": FILES / "client-locked.key",
        "tls.server.keyPassword": "hush",
        "tls.server.need.client.auth": "require",
        "tls.server.authClient": True,
        "tls.server.trustCertPath": FILES / "ca.pem",
        "tls.client.certPath": FILES / "client.pem",
        "tls.client.keyPath": FILES / "client.key",
        "tls.client.authServer": True,
        "tls.client.trustCertPath": FILES / "ca.pem",
    }
    texts = {key: value if isinstance(value, bool) else str(value) for key, value in settings.items()}
    known = (
        *TLS,
        "-Dtls.test.mode.enable=false",
        "-Dtls.client.authServer=true",
        f"-Dtls.client.trustCertPath={FILES / 'ca.pem'}",
        f"-Dtls.client.certPath={FILES / 'client.pem'}",
        f"-Dtls.client.keyPath={FILES / 'client.key'}",
    )
    with OurServer(tmp_path / "ours", broker_conf=texts) as server:
        assert traffic(server, "5.5", "Secret", "g1", "-", "-", java_opts=known)[-1] == "DONE"
        assert traffic(server, "5.5", "Secret", "g1", "-", "-", java_opts=TLS)[-1].startswith("REFUSED")
