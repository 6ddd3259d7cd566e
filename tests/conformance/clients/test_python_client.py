"""What of the Python client needs a server of a certain make: TLS, access control; and traces beside Java's.

What any server can show is in `tests/client` (`test_client_suite.py`). `python_client_program.py` runs inside the
server's namespace.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from conformance import JAVA
from conformance.conftest import SIDES
from conformance.official.programs import compile_java
from conformance.on_demand import ON_DEMAND
from conformance.servers.processes import Running
from conformance.servers.server import Server

HERE = Path(__file__).parent
TRACED = (JAVA / "TracedExchange.java").read_text(encoding="utf-8")
ROOT = HERE.parents[2]
CERTIFICATES = ROOT / "tests" / "client" / "certificates"
AUTH = "org.apache.rocketmq.auth"
PLAIN_ACL = """
globalWhiteRemoteAddresses: []
accounts:
- accessKey: pythonuser
  secretKey: '12345678'
  defaultTopicPerm: PUB|SUB
  defaultGroupPerm: PUB|SUB
  admin: true
"""
PROGRAM = HERE / "python_client_program.py"


def start(server: Server, scenario: str, *arguments: str) -> Running:
    log = server.home / "run" / f"python-client-{scenario}-{'-'.join(arguments[:2])}.out"
    return Running(server.namespace, [sys.executable, str(PROGRAM), scenario, *arguments], log, name=scenario)


def findings(program: Running, timeout: float = 120.0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(program.wait_for(r"^FOUND (.*)\n", timeout)[1])
    assert program.finish() == 0
    return found


def run(server: Server, scenario: str, *arguments: str) -> dict[str, Any]:
    return findings(start(server, scenario, *arguments))


EXCHANGED = {"ids": 40, "places": 40, "seen": 40, "polled": 40, "queues": 4}


@pytest.mark.parametrize("way", ["vip", "address_server", "auto_batch", "heartbeat_v2"])
def test_the_same_exchange_by_another_way(side: Server, names: Callable[[str], str], way: str) -> None:
    assert run(side, "by_way_of", names("py"), way) == EXCHANGED


@pytest.mark.parametrize("version", ["4.9", "5.5"])
def test_the_same_exchange_over_tls(
    official: Callable[[str], Server], names: Callable[[str], str], version: str
) -> None:
    assert run(official(version), "by_way_of", names("py"), "tls") == EXCHANGED


@pytest.mark.parametrize("version", [pytest.param("4.9", marks=ON_DEMAND), "5.5"])
def test_both_sides_check_certificates(
    fresh_server: Callable[..., Server], names: Callable[[str], str], version: str
) -> None:
    server_files = {"certPath": "server.pem", "keyPath": "server.key", "trustCertPath": "ca.pem"}
    options = [f"-Dtls.server.{key}={CERTIFICATES / file}" for key, file in server_files.items()]
    options += [
        "-Dtls.test.mode.enable=false",
        "-Dtls.server.need.client.auth=require",
        "-Dtls.server.authClient=true",
        # The broker is a client of the name server: it must show and check certificates too.
        "-Dtls.enable=true",
        "-Dtls.client.authServer=true",
        f"-Dtls.client.certPath={CERTIFICATES / 'client.pem'}",
        f"-Dtls.client.keyPath={CERTIFICATES / 'client.key'}",
        f"-Dtls.client.trustCertPath={CERTIFICATES / 'ca.pem'}",
    ]
    server = fresh_server(f"official-{version}", java_opts=options)
    files = [str(CERTIFICATES / name) for name in ("ca.pem", "client.pem", "client.key")]
    found = run(server, "by_way_of", names("py"), "tls_checked", *files)
    assert found == EXCHANGED


@pytest.mark.parametrize("version", ["4.9", "5.5"])
def test_requests_are_signed(
    fresh_server: Callable[..., Server], names: Callable[[str], str], tmp_path: Path, version: str
) -> None:
    conf: dict[str, object] = {"aclEnable": True}
    if version == "5.5":
        credentials = json.dumps({"accessKey": "inner", "secretKey": "12345678"})
        conf = {
            "authenticationEnabled": True,
            "authenticationProvider": f"{AUTH}.authentication.provider.DefaultAuthenticationProvider",
            "authenticationMetadataProvider": f"{AUTH}.authentication.provider.LocalAuthenticationMetadataProvider",
            "initAuthenticationUser": json.dumps({"username": "pythonuser", "password": "12345678"}),
            "innerClientAuthenticationCredentials": credentials,
        }
    home = tmp_path / f"0-official-{version}"  # where the fixture puts the first server
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "plain_acl.yml").write_text(PLAIN_ACL, encoding="utf-8")
    server = fresh_server(f"official-{version}", broker_conf=conf)
    found = run(server, "signed", names("py"), "pythonuser", "12345678")
    assert found == {"seen": ["signed"], "refused": [1, 1, 1] if version == "4.9" else [16, 16, 16]}


@pytest.mark.parametrize("name", SIDES)
def test_traces_are_those_of_the_official_client(
    session_server: Callable[[str], Server], names: Callable[[str], str], name: str
) -> None:
    """The same exchange by the official 5.5.0 client and by ours leaves the same records, but for times and ids."""
    server = session_server(name)
    java, python = names("java"), names("py")
    finished = server.programs.run_java(compile_java("5.5", TRACED), java)
    assert finished.code == 0, finished.output
    run(server, "traced", python)
    recorded = {prefix: run(server, "traces_of", prefix) for prefix in (java, python)}
    ours = normalized(recorded[python]["records"], python)
    assert ours == normalized(recorded[java]["records"], java)
    # 4.9 stores no region with a message, and consuming a message without one is not traced.
    consumed = {"SubBefore", "SubAfter"} if name != "official-4.9" else set()
    assert {record[0] for record in ours} == {"Pub", "EndTransaction", *consumed}
    assert any("k1" in keys for keys in recorded[python]["keys"])


TIMES: Final = {
    "Pub": {1: "time", 10: "cost"},
    "SubBefore": {1: "time"},
    "SubAfter": {3: "cost", 7: "time"},
    "EndTransaction": {1: "time"},
}
IDS: Final = {"Pub": (5, 12), "SubBefore": (4, 5), "SubAfter": (1, 2), "EndTransaction": (5, 10)}


def normalized(records: list[list[str]], prefix: str) -> list[list[str]]:
    """Sorted, without times, costs, ids and the prefix; ids that must be there are checked for their length."""
    found = []
    for record in records:
        kind, *_ = fields = [field.replace(prefix, "") for field in record]
        for index, word in TIMES[kind].items():
            assert fields[index].isdigit()
            fields[index] = word
        for index in IDS[kind]:
            fields[index] = f"id of {len(fields[index])}"
        found.append(fields)
    return sorted(found)
