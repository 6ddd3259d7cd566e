"""TLS of the port, as in the official proxy: its own certificate, ALPN `h2`, no certificates of clients.

    tls.server.mode      permissive (default): plain and TLS; enforcing: only TLS; disabled: only plain
    tlsTestModeEnable    true (default): a certificate generated at the start, which proves nothing
    tlsCertPath          certificate chain, PEM          tlsKeyPath, tlsKeyPassword    its key, PEM

The files are read again when they change. Mirrors `ProxyAndTlsProtocolNegotiator`.
"""

import datetime
import ssl
from typing import Final

from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.errors import StartError
from pocketmq.broker.network.tls import ONE_YEAR, Tls, load_identity, use_test_certificate

_LAST_DAY: Final = datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC)
"""As the official test certificate."""


class GrpcTls(Tls):
    """The TLS context of the port, made on first use."""

    def __init__(self, config: BrokerConfig) -> None:
        super().__init__(config)
        self._endpoint = endpoint = config.endpoint
        self.files = endpoint.tls_cert_path, endpoint.tls_key_path
        # A certificate that is named is used. The official proxy, and a strict port, ignore it in the test mode, which
        # is the default.
        is_ignored = endpoint.grpc_strict or not endpoint.tls_cert_path
        self._is_test = endpoint.tls_test_mode_enable and is_ignored

    def check(self) -> None:
        """Raise `StartError` for a certificate that cannot be used."""
        if self.is_served and not self._is_test:
            self.server_context()

    def make_server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["h2"])
        if self._is_test:
            use_test_certificate(context, "localhost", since=ONE_YEAR, until=_LAST_DAY)
            return context
        cert_path, key_path = self.files
        if not cert_path or not key_path:
            raise StartError("tlsCertPath and tlsKeyPath must be set unless tlsTestModeEnable is true")
        where = f"tlsCertPath={cert_path}, tlsKeyPath={key_path}"
        load_identity(context, cert_path, key_path, self._endpoint.tls_key_password, where)
        return context
