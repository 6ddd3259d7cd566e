"""The official gRPC clients that are not Java: over TLS, and with users, passwords and rights.

Go accepts any certificate. Python and Node check it: they are told to trust the authority that signed the server's.
"""

import datetime
import ipaddress
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from conformance.access.access_rows import AUTH_SETTINGS, ROOT
from conformance.grpc.access import PROXY
from conformance.grpc_clients.consumer_side import make_endpoint
from conformance.grpc_clients.other_clients import (
    NAMES,
    PUSHING,
    able,
    expected,
    lines,
    make_places,
    start,
)
from conformance.on_demand import ON_DEMAND
from conformance.requests.transcripts import Row
from conformance.servers.raw_client import RawClient
from conformance.servers.remoting import Reply
from conformance.servers.server import Server, started_at_first_use

SHOP, WRONG, GUEST = ("shop", "shoppassword"), ("shop", "wrongpassword"), ("guest", "guestpassword")
"""A user with rights, the same with a wrong password, a user without a right."""
DAY = datetime.timedelta(days=1)

pytestmark = pytest.mark.timeout(900)


class SigningClient(RawClient):
    """Signs as the first user, who may do all."""

    def call(self, code: int, body: bytes = b"", **fields: object) -> Reply:
        signed: Mapping[str, str] = Row(ROOT, code, dict(fields), body).signed_fields()
        return super().call(code, body, **signed)


def prepare(server: Server) -> None:
    with SigningClient(server) as client:
        for name, password in (SHOP, GUEST):
            user = {"username": name, "password": password, "userType": "Normal"}
            assert client.call(3001, json.dumps(user).encode(), username=name).code == 0
        entries = [
            {"resource": resource, "actions": ["Pub", "Sub"], "decision": "Allow"}
            for resource in ("Topic:*", "Group:*")
        ]
        rights = json.dumps({"policies": [{"entries": entries}]}).encode()
        assert client.call(3006, rights, subject="User:shop").code == 0


def make_certificate(folder: Path) -> dict[str, Path]:
    """`trusted`: an authority; `chain` and `key`: a certificate of 127.0.0.1 that it signed."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    def signed(
        name: str, key: rsa.RSAPrivateKey, issuer: str, by: rsa.RSAPrivateKey, more: x509.ExtensionType
    ) -> x509.Certificate:
        def of(common: str) -> x509.Name:
            return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common)])

        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder().subject_name(of(name)).issuer_name(of(issuer))
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - DAY).not_valid_after(now + DAY)
        return builder.add_extension(more, critical=False).sign(by, hashes.SHA256())

    authority, server = (rsa.generate_private_key(65537, 2048) for _ in range(2))
    pem = serialization.Encoding.PEM
    root = signed("authority", authority, "authority", authority, x509.BasicConstraints(True, None))
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    leaf = signed("broker", server, "authority", authority, names)
    files = {
        "trusted": root.public_bytes(pem),
        "chain": leaf.public_bytes(pem) + root.public_bytes(pem),
        "key": server.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    }
    for name, content in files.items():
        (folder / f"{name}.pem").write_bytes(content)
    return {name: folder / f"{name}.pem" for name in files}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="module")
def servers(
    peers: None, certificate: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Server]]:
    tls = {
        "tlsTestModeEnable": False,
        "tlsCertPath": str(certificate["chain"]),
        "tlsKeyPath": str(certificate["key"]),
    }

    def make(side: str) -> Server:
        return make_endpoint(side, tmp_path_factory.mktemp(side), AUTH_SETTINGS, {**PROXY, **tls})

    with started_at_first_use(make, prepare) as get:
        yield get


@pytest.fixture(params=["ours", pytest.param("official-proxy", marks=ON_DEMAND)])
def server(request: pytest.FixtureRequest, servers: Callable[[str], Server]) -> Server:
    return servers(request.param)


@pytest.fixture
def prefix(server: Server, names: Callable[[str], str]) -> str:
    prefix = names("talk")
    with SigningClient(server) as client:
        make_places(client, prefix)
    return prefix


@pytest.mark.parametrize("name", PUSHING)
def test_over_tls(
    server: Server, certificate: dict[str, Path], name: str, prefix: str, tmp_path: Path
) -> None:
    trusted = {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(certificate["trusted"])}
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
