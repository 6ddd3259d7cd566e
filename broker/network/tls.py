"""TLS as in the official servers: on the same ports as plain connections; the first byte decides.

The file that tls.config.file names may set the same keys (`docs/configuration.md`). Certificates are read again when
their files change. Settings that cannot work stop the start; certificates are loaded at the first TLS connection.
`tls_stream.py` handles the bytes. Mirrors `TlsSystemConfig` and `TlsHelper`. Keys are never logged.
"""

import contextlib
import datetime
import logging
import os
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..errors import StartError

if TYPE_CHECKING:
    from ..config.broker_config import BrokerConfig

_log = logging.getLogger("pocketmq.network")

_VERIFY: Final = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "require": ssl.CERT_REQUIRED}
ONE_YEAR: Final = datetime.timedelta(days=365)
ONE_DAY: Final = datetime.timedelta(days=1)


class Tls:
    """The TLS contexts of one process, created on first use."""

    def __init__(self, config: "BrokerConfig") -> None:
        self._config = config
        self._server: ssl.SSLContext | None = None
        self._client: ssl.SSLContext | None = None
        self._read: dict[str, float] = {}
        self.files: tuple[str, ...] = (
            config.tls_server_cert_path,
            config.tls_server_key_path,
            config.tls_server_trust_cert_path,
        )
        """Read again when they change."""

    @property
    def is_served(self) -> bool:
        return self._config.tls_server_mode != "disabled"

    @property
    def is_enforced(self) -> bool:
        return self._config.tls_server_mode == "enforcing"

    def check(self) -> None:
        """Raise `StartError` for certificates and keys that cannot be used."""
        if self.is_served and not self._config.tls_test_mode_enable:
            self.server_context()
        if self.uses_client:
            self.client_context()

    def server_context(self) -> ssl.SSLContext:
        """For connections that begin with TLS. Raises `StartError` if certificate or key cannot be read."""
        changed = self._server is not None and self._times() != self._read
        if self._server is None or changed:
            try:
                self._server = self.make_server_context()
            except StartError as error:
                if self._server is None:
                    raise
                _log.error("cannot use the changed certificates, the former ones stay in use: %s", error)
            self._read = self._times()
        return self._server

    @property
    def uses_client(self) -> bool:
        """Whether our own connections begin with TLS: by setting, or because our own name server accepts TLS only."""
        config = self._config
        return config.tls_enable or config.use_tls or self.is_enforced

    def client_context(self) -> ssl.SSLContext:
        """For our own connections. Without authServer every server is trusted, as in the official client."""
        if self._client is None:
            config = self._config
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            # As in the official client: brokers have addresses, not host names.
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            if config.tls_client_auth_server and not config.tls_test_mode_enable:
                context.verify_mode = ssl.CERT_REQUIRED
                _trust(context, config.tls_client_trust_cert_path, "tls.client.trustCertPath")
            if config.tls_client_cert_path and not config.tls_test_mode_enable:
                _identify(
                    context,
                    config.tls_client_cert_path,
                    config.tls_client_key_path,
                    config.tls_client_key_password,
                    "tls.client",
                    config.tls_config_file,
                )
            self._client = context
        return self._client

    def make_server_context(self) -> ssl.SSLContext:
        config = self._config
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if config.tls_test_mode_enable:
            use_test_certificate(context)
            return context
        _identify(
            context,
            config.tls_server_cert_path,
            config.tls_server_key_path,
            config.tls_server_key_password,
            "tls.server",
            config.tls_config_file,
        )
        wanted = config.tls_server_need_client_auth
        # The official server accepts any certificate for `require` without authClient; ours checks it.
        if wanted == "require" or config.tls_server_auth_client:
            context.verify_mode = _VERIFY[wanted]
        if context.verify_mode is not ssl.CERT_NONE:
            _trust(context, config.tls_server_trust_cert_path, "tls.server.trustCertPath")
        return context

    def _times(self) -> dict[str, float]:
        times = {}
        for path in self.files:
            with contextlib.suppress(OSError):
                times[path] = os.stat(path).st_mtime
        return times


def _identify(
    context: ssl.SSLContext, cert_path: str, key_path: str, password: str, prefix: str, conf_file: str
) -> None:
    if not cert_path or not key_path:
        raise StartError(
            f"{prefix}.certPath and {prefix}.keyPath must be set unless tls.test.mode.enable is true; "
            f"tls.config.file is {conf_file}"
        )
    load_identity(
        context, cert_path, key_path, password, f"{prefix}.certPath={cert_path}, keyPath={key_path}"
    )


def load_identity(context: ssl.SSLContext, cert_path: str, key_path: str, password: str, where: str) -> None:
    """Raises `StartError`, which says `where` the settings of these files are."""
    try:
        # A callback: without one OpenSSL asks for the password at the terminal.
        context.load_cert_chain(cert_path, key_path, password=lambda: password)
    except (ssl.SSLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or "not readable"
        raise StartError(f"{where}: {reason}") from None


def _trust(context: ssl.SSLContext, path: str, key: str) -> None:
    if not path:
        raise StartError(f"{key} must be set: it names the trusted certificates")
    try:
        context.load_verify_locations(path)
    except (ssl.SSLError, OSError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or "not readable"
        raise StartError(f"{key}={path}: {reason}") from None


def use_test_certificate(
    context: ssl.SSLContext,
    common_name: str = "pocketmq test mode",
    *,
    since: datetime.timedelta = ONE_DAY,
    until: datetime.datetime | None = None,
) -> None:
    """A new key and a certificate signed with it, which proves nothing; neither is kept. `since` is how long ago the
    certificate became valid; it ends in a year, unless `until` says when."""
    import tempfile

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - since)
        .not_valid_after(until or now + ONE_YEAR)
        .sign(key, hashes.SHA256())
    )
    text = certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    descriptor, path = tempfile.mkstemp(suffix=".pem")  # readable by us alone; ssl reads only files
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
        context.load_cert_chain(path)
    finally:
        Path(path).unlink(missing_ok=True)
