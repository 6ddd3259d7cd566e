"""Keys, TLS and broker addresses of a program that connects to a cluster, as one value.

A client takes them as keywords: `Producer("g", hooks=access.hooks(), **access.tls_settings())`. `access_options.py`
reads them from a command line.
"""

import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from .connections.tls import tls_context
from .errors import InvalidArgument
from .hooks.acl import AclClientRPCHook, keys_from_yaml
from .settings.client_settings import ClientSettings

_ADDRESS: Final = re.compile(r"[^\s:;=]+:\d{1,5}|\[[0-9a-fA-F:.]+\]:\d{1,5}")


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Picklable and hashable."""

    access_key: str | None = None
    secret_key: str | None = None
    security_token: str | None = None
    uses_tls: bool = False
    trusted: str | None = None
    """Path of a CA certificate; None accepts any server certificate."""
    certificate: str | None = None
    key: str | None = None
    password: str | None = None
    address_map: str | None = None
    """`advertised=reachable`, both `host:port`, several separated by `;`."""

    def __repr__(self) -> str:
        return f"Access(access_key={self.access_key!r}, uses_tls={self.uses_tls})"

    def check(self, names: Mapping[str, str]) -> None:
        """`InvalidArgument` for one key without the other, certificates without TLS, and a wrong address map.

        `names` says how the user calls each field.
        """
        if bool(self.access_key) != bool(self.secret_key):
            raise InvalidArgument(f"{names['access_key']}, {names['secret_key']}: set both or none")
        files = ("trusted", "certificate", "key")
        if not self.uses_tls and any(getattr(self, name) for name in files):
            raise InvalidArgument(
                f"{names['uses_tls']} is required with {', '.join(names[name] for name in files)}"
            )
        try:
            self.addresses()
        except InvalidArgument as error:
            raise InvalidArgument(f"{names['address_map']} {error}") from error

    def with_keys_of_file(self, environ: Mapping[str, str]) -> "Access":
        """The same with the keys of mqadmin's file `$ROCKETMQ_HOME/conf/tools.yml`, if there is one and this has no
        keys. `InvalidArgument` for a file that cannot be read."""
        home = environ.get("ROCKETMQ_HOME")
        file = Path(home or ".", "conf", "tools.yml")
        if self.access_key or home is None or not file.is_file():
            return self
        access_key, secret_key, token = keys_from_yaml(file)
        return msgspec.structs.replace(
            self, access_key=access_key, secret_key=secret_key, security_token=token
        )

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
        """None for plain connections. `InvalidSetting` for files that cannot be read."""
        return tls_context(ClientSettings(**self.tls_settings()))

    def addresses(self) -> dict[str, str]:
        """The address map: what a route says to what this machine can reach. `InvalidArgument` for anything else."""
        result = {}
        for part in filter(None, (text.strip() for text in (self.address_map or "").split(";"))):
            advertised, _, reachable = (text.strip() for text in part.partition("="))
            if not (_ADDRESS.fullmatch(advertised) and _ADDRESS.fullmatch(reachable)):
                raise InvalidArgument(
                    f"must be host:port=host:port, or several separated by ;, got {part!r:.200}"
                )
            result[advertised] = reachable
        return result

    def reachable(self, address: str) -> str:
        """The address under which this machine reaches a broker."""
        return self.addresses().get(address, address)


NO_ACCESS_KEYS: Final = Access()
"""No keys, no TLS."""
