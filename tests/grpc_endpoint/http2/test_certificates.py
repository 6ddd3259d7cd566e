"""Certificates in files: a key with a password."""

import datetime
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


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Certificate and key, the key locked."""
    cert, key_path = tmp_path / "cert.pem", tmp_path / "key.pem"
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "broker")])
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
    return cert, key_path


def of(files: tuple[Path, Path], password: str = PASSWORD) -> GrpcTls:
    cert, key = map(str, files)
    return tls(tls_cert_path=cert, tls_key_path=key, tls_key_password=password)


async def test_a_locked_key_is_opened(files: tuple[Path, Path]) -> None:
    """That changed files are read again is in the tests of the broker's TLS, which this port has too."""
    locked = of(files)
    locked.check()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(files[0])
    context.set_alpn_protocols(["h2"])
    async with echo_port(tls=locked) as (port, _, _), GrpcClient.connected(port, tls=context) as client:
        assert await client.open("/echo/Unary", framed(b"x")).all() == [b"x"]


@pytest.mark.parametrize("password", ["", "wrong"])
def test_a_wrong_password_stops_the_start(files: tuple[Path, Path], password: str) -> None:
    with pytest.raises(StartError, match="tlsKeyPath=") as caught:
        of(files, password).check()
    assert "\n" not in str(caught.value)
