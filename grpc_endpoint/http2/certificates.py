"""TLS of the port, as in the official proxy: its own certificate, ALPN `h2`, no certificates of clients.

    tls.server.mode      permissive (default): plain and TLS; enforcing: only TLS; disabled: only plain
    tlsTestModeEnable    true (default): a certificate generated at the start, which proves nothing
    tlsCertPath          certificate chain, PEM          tlsKeyPath, tlsKeyPassword    its key, PEM

The files are read again when they change. Mirrors `ProxyAndTlsProtocolNegotiator`.
"""

import contextlib
import datetime
import logging
import os
import ssl
from typing import Final

import msgspec
from pocketmq.broker.errors import StartError
from pocketmq.broker.network.tls import ONE_YEAR, use_test_certificate

_log = logging.getLogger("pocketmq.grpc")

_LAST_DAY: Final = datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC)
"""As the official test certificate."""


class Certificates(msgspec.Struct, frozen=True, kw_only=True):
    """The settings."""

    mode: str = "permissive"
    is_test: bool = True
    cert_path: str = ""
    key_path: str = ""
    key_password: str = ""


class GrpcTls:
    """The TLS context of the port, made on first use."""

    def __init__(self, certificates: Certificates) -> None:
        self._settings = certificates
        self._context: ssl.SSLContext | None = None
        self._read: dict[str, float] = {}

    @property
    def is_served(self) -> bool:
        return self._settings.mode != "disabled"

    @property
    def is_enforced(self) -> bool:
        return self._settings.mode == "enforcing"

    def check(self) -> None:
        """Raise `StartError` for a certificate that cannot be used."""
        if self.is_served and not self._settings.is_test:
            self.server_context()

    def server_context(self) -> ssl.SSLContext:
        if self._context is None or self._times() != self._read:
            times = self._times()
            try:
                self._context = self._make_context()
            except StartError as error:
                if self._context is None:
                    raise
                _log.error("cannot use the changed certificate, the former one stays in use: %s", error)
            self._read = times
        return self._context

    def _make_context(self) -> ssl.SSLContext:
        settings = self._settings
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["h2"])
        if settings.is_test:
            use_test_certificate(context, "localhost", since=ONE_YEAR, until=_LAST_DAY)
            return context
        if not settings.cert_path or not settings.key_path:
            raise StartError("tlsCertPath and tlsKeyPath must be set unless tlsTestModeEnable is true")
        try:
            # A callback: without one OpenSSL asks for the password at the terminal.
            context.load_cert_chain(
                settings.cert_path, settings.key_path, password=lambda: settings.key_password
            )
        except (ssl.SSLError, OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or "not readable"
            where = f"tlsCertPath={settings.cert_path}, tlsKeyPath={settings.key_path}"
            raise StartError(f"{where}: {reason}") from None
        return context

    def _times(self) -> dict[str, float]:
        times = {}
        for path in (self._settings.cert_path, self._settings.key_path):
            with contextlib.suppress(OSError):
                times[path] = os.stat(path).st_mtime
        return times
