"""Access keys, TLS and addresses: how a source or sink signs its requests, encrypts its connections, and where it
finds brokers. Pure, but for reading certificate files.

    rocketmq.accessKey, rocketmq.secretKey, rocketmq.securityToken    sign requests, for brokers with access control
    rocketmq.tls.enable                            encrypts connections; accepts any server certificate
    rocketmq.tls.client.trustCertPath              accepts only server certificates signed by this CA certificate
    rocketmq.tls.client.certPath, .keyPath, .keyPassword              the client certificate
    rocketmq.broker.address.map                    other addresses for brokers, `advertised=reachable;...`

Every machine that runs tasks needs the files at these paths.
"""

import re
import ssl
from typing import Any, Final

import msgspec
from pocketmq.client.connections.tls import tls_context
from pocketmq.client.errors import ClientError
from pocketmq.client.hooks.acl import AclClientRPCHook
from pocketmq.client.settings.client_settings import ClientSettings

from ..errors import OptionError
from .option_values import OptionValues

ACCESS_KEY, SECRET_KEY, SECURITY_TOKEN = "rocketmq.accessKey", "rocketmq.secretKey", "rocketmq.securityToken"
TLS: Final = "rocketmq.tls.enable"
TRUST, CERTIFICATE, KEY, PASSWORD = (
    f"rocketmq.tls.client.{name}" for name in ("trustCertPath", "certPath", "keyPath", "keyPassword")
)
ADDRESS_MAP: Final = "rocketmq.broker.address.map"
ACCESS_NAMES: Final = (
    ACCESS_KEY,
    SECRET_KEY,
    SECURITY_TOKEN,
    TLS,
    TRUST,
    CERTIFICATE,
    KEY,
    PASSWORD,
    ADDRESS_MAP,
)
"""The names of these options."""
_ADDRESS: Final = re.compile(r"[^\s:;=]+:\d{1,5}|\[[0-9a-fA-F:.]+\]:\d{1,5}")


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Keys and certificates; picklable.

    A process keeps one `BrokerClient` for each name server address and `Access`.
    """

    access_key: str | None = None
    secret_key: str | None = None
    security_token: str | None = None
    uses_tls: bool = False
    trusted: str | None = None
    certificate: str | None = None
    key: str | None = None
    password: str | None = None
    address_map: str | None = None
    """`advertised=reachable`, both `host:port`, several separated by `;`."""

    def __repr__(self) -> str:
        return f"Access(access_key={self.access_key!r}, uses_tls={self.uses_tls})"

    def hooks(self) -> tuple[AclClientRPCHook, ...]:
        """The hook that signs each request; empty without keys."""
        if self.access_key is None:
            return ()
        return (AclClientRPCHook(self.access_key, self.secret_key or "", self.security_token),)

    def tls_settings(self) -> dict[str, Any]:
        """The TLS part of a client's settings."""
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
        """None for plain connections. `OptionError` for files that cannot be read."""
        try:
            return tls_context(ClientSettings(**self.tls_settings()))
        except ClientError as error:
            raise OptionError(f"options rocketmq.tls.client.*: {error}") from error

    def addresses(self) -> dict[str, str]:
        """The address map: what a route says to what this machine can reach. `OptionError` for anything else."""
        result = {}
        for part in filter(None, (text.strip() for text in (self.address_map or "").split(";"))):
            advertised, _, reachable = (text.strip() for text in part.partition("="))
            if not (_ADDRESS.fullmatch(advertised) and _ADDRESS.fullmatch(reachable)):
                raise OptionError(
                    f"option {ADDRESS_MAP} must be host:port=host:port, or several separated by ;, got {part!r:.200}"
                )
            result[advertised] = reachable
        return result

    def reachable(self, address: str) -> str:
        """The address under which this machine reaches a broker."""
        return self.addresses().get(address, address)


NO_ACCESS_KEYS: Final = Access()
"""No keys, no TLS."""


def read_access(values: OptionValues) -> Access:
    """`OptionError` for one key without the other, or certificates without TLS."""
    access = Access(
        access_key=values.text(ACCESS_KEY),
        secret_key=values.text(SECRET_KEY),
        security_token=values.text(SECURITY_TOKEN),
        uses_tls=values.flag(TLS, False),
        trusted=values.text(TRUST),
        certificate=values.text(CERTIFICATE),
        key=values.text(KEY),
        password=values.text(PASSWORD),
        address_map=values.text(ADDRESS_MAP),
    )
    access.addresses()
    if bool(access.access_key) != bool(access.secret_key):
        raise OptionError(f"options {ACCESS_KEY}, {SECRET_KEY}: set both or none")
    if not access.uses_tls and (access.trusted or access.certificate or access.key):
        raise OptionError(f"option {TLS} must be true if an option rocketmq.tls.client.* is set")
    return access


def source_options(access: Access) -> dict[str, str]:
    """The options of source and sink for this access."""
    values = {
        ACCESS_KEY: access.access_key,
        SECRET_KEY: access.secret_key,
        SECURITY_TOKEN: access.security_token,
        TLS: "true" if access.uses_tls else None,
        TRUST: access.trusted,
        CERTIFICATE: access.certificate,
        KEY: access.key,
        PASSWORD: access.password,
        ADDRESS_MAP: access.address_map,
    }
    return {name: value for name, value in values.items() if value is not None}
