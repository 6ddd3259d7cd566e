"""How name servers and brokers let us in: keys that sign requests, and TLS. Pure but for files of certificates.

    rocketmq.accessKey, rocketmq.secretKey, rocketmq.securityToken       signatures, for brokers with access control
    rocketmq.tls.enable                                                  encrypted; any certificate is believed
    rocketmq.tls.client.trustCertPath                                    only servers whose certificate this one signed
    rocketmq.tls.client.certPath, .keyPath, .keyPassword                 the certificate that is shown

Paths must be there on every machine that runs tasks.
"""

import ssl
from typing import TYPE_CHECKING, Any, Final

import msgspec
from pocketmq.client.connections.tls import tls_context
from pocketmq.client.errors import ClientError
from pocketmq.client.hooks.acl import AclClientRPCHook
from pocketmq.client.settings.client_settings import ClientSettings

from ..errors import OptionError

if TYPE_CHECKING:
    from .option_values import OptionValues

ACCESS_KEY, SECRET_KEY, SECURITY_TOKEN = "rocketmq.accessKey", "rocketmq.secretKey", "rocketmq.securityToken"
TLS: Final = "rocketmq.tls.enable"
TRUST, CERTIFICATE, KEY, PASSWORD = (
    f"rocketmq.tls.client.{name}" for name in ("trustCertPath", "certPath", "keyPath", "keyPassword")
)
NAMES: Final = (ACCESS_KEY, SECRET_KEY, SECURITY_TOKEN, TLS, TRUST, CERTIFICATE, KEY, PASSWORD)


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown to servers; picklable, and part of the key under which a process keeps its connections."""

    access_key: str | None = None
    secret_key: str | None = None
    security_token: str | None = None
    uses_tls: bool = False
    trusted: str | None = None
    certificate: str | None = None
    key: str | None = None
    password: str | None = None

    def __repr__(self) -> str:
        return f"Access(access_key={self.access_key!r}, uses_tls={self.uses_tls})"

    def hooks(self) -> tuple[AclClientRPCHook, ...]:
        """What signs each request."""
        if self.access_key is None:
            return ()
        return (AclClientRPCHook(self.access_key, self.secret_key or "", self.security_token),)

    def tls_settings(self) -> dict[str, Any]:
        """The same as settings of a client."""
        return {
            "use_tls": self.uses_tls,
            "tls_test_mode_enable": self.trusted is None and self.certificate is None,
            "tls_client_auth_server": self.trusted is not None,
            "tls_client_trust_cert_path": self.trusted,
            "tls_client_cert_path": self.certificate,
            "tls_client_key_path": self.key,
            "tls_client_key_password": self.password,
        }

    def tls(self) -> ssl.SSLContext | None:
        """None for plain connections; `OptionError` for files that cannot be read."""
        try:
            return tls_context(ClientSettings(**self.tls_settings()))
        except ClientError as error:
            raise OptionError(f"options rocketmq.tls.client.*: {error}") from error


NO_ACCESS_KEYS: Final = Access()
"""Nothing is shown."""


def read_access(values: "OptionValues") -> Access:
    """`OptionError` for half a pair of keys, or certificates without TLS."""
    access = Access(
        access_key=values.text(ACCESS_KEY),
        secret_key=values.text(SECRET_KEY),
        security_token=values.text(SECURITY_TOKEN),
        uses_tls=values.flag(TLS, False),
        trusted=values.text(TRUST),
        certificate=values.text(CERTIFICATE),
        key=values.text(KEY),
        password=values.text(PASSWORD),
    )
    if bool(access.access_key) != bool(access.secret_key):
        raise OptionError(f"options {ACCESS_KEY}, {SECRET_KEY}: both or none")
    if not access.uses_tls and (access.trusted or access.certificate or access.key):
        raise OptionError(f"option {TLS}: true is required with rocketmq.tls.client.*")
    return access
