"""Certificates in files: with a password, replaced while the port is open, broken."""

import datetime
import logging
import os
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pocketmq.broker.errors import StartError
from pocketmq.grpc_endpoint.http2.certificates import GrpcTls

from grpc_client import GrpcClient, framed
from http2_echo import echo_port, tls

PASSWORD = "not in the log"
_times = iter(range(1_700_000_000, 1_800_000_000))


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Certificate and key, the key locked."""
    paths = tmp_path / "cert.pem", tmp_path / "key.pem"
    write(*paths, "first")
    return paths


def write(cert: Path, key_path: Path, name: str) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    cert.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    locked = serialization.BestAvailableEncryption(PASSWORD.encode())
    key_path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
    )
    changed(cert)


def changed(path: Path) -> None:
    """As a file that was written at another second."""
    now = next(_times)
    os.utime(path, (now, now))


def of(files: tuple[Path, Path], password: str = PASSWORD) -> GrpcTls:
    cert, key = map(str, files)
    return tls(tls_cert_path=cert, tls_key_path=key, tls_key_password=password)


async def served(port: int, cert: Path) -> None:
    """A client that trusts this certificate only."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(cert)
    context.set_alpn_protocols(["h2"])
    async with GrpcClient.connected(port, tls=context) as client:
        assert await client.open("/echo/Unary", framed(b"x")).all() == [b"x"]


async def test_a_locked_key_is_opened_and_a_new_certificate_served_without_a_restart(
    files: tuple[Path, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    locked = of(files)
    locked.check()
    async with echo_port(tls=locked) as (port, _, _):
        await served(port, files[0])
        write(*files, "second")
        await served(port, files[0])
        good = tmp_path / "good.pem"
        good.write_bytes(files[0].read_bytes())
        files[0].write_text("no certificate")
        changed(files[0])
        with caplog.at_level(logging.ERROR, "pocketmq"):
            await served(port, good)
            await served(port, good)
    assert ["the former ones stay in use" in one.getMessage() for one in caplog.records] == [True]


@pytest.mark.parametrize("password", ["", "wrong"])
def test_a_wrong_password_stops_the_start(files: tuple[Path, Path], password: str) -> None:
    with pytest.raises(StartError, match="tlsKeyPath=") as caught:
        of(files, password).check()
    assert "\n" not in str(caught.value)
