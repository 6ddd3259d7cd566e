"""Signing of requests with an access key, as brokers with access control want it.

    async with Producer("orders", hooks=[AclClientRPCHook("user", "secret")]) as producer: ...
    hook = AclClientRPCHook.from_yaml("tools.yml")      # accessKey, secretKey and, if need be, securityToken

The same for 4.9 (`aclEnable`) and 5.x (`authenticationEnabled`); what is signed is defined in
`pocketmq.protocol.wire.signatures`. Secrets appear in no text of this module. Mirrors `AclClientRPCHook` and
`SessionCredentials`.
"""

from pathlib import Path
from typing import Any, Self

from pocketmq.protocol.wire.command import RawBody
from pocketmq.protocol.wire.schema import Request
from pocketmq.protocol.wire.signatures import (
    ACCESS_KEY,
    SECURITY_TOKEN,
    SIGNATURE,
    signature_of,
    signed_content,
)

from ..arguments import checks_arguments
from ..errors import InvalidArgument
from .rpc_hooks import RPCHook


@checks_arguments
class AclClientRPCHook(RPCHook):
    """Signs every request. `ClientError` for an empty key."""

    def __init__(self, access_key: str, secret_key: str, security_token: str | None = None) -> None:
        if not access_key or not secret_key:
            raise InvalidArgument("access control needs an access key and a secret key")
        self.access_key = access_key
        self._security_token = security_token
        self._secret_key = secret_key

    @classmethod
    def from_yaml(cls, path: str | Path) -> Self:
        """From a file as mqadmin's `conf/tools.yml`. `ClientError` if it cannot be read or has no keys."""
        return cls(*keys_from_yaml(path))

    def __eq__(self, other: object) -> bool:
        """Hooks with the same keys are equal: their clients may share an instance."""
        return isinstance(other, AclClientRPCHook) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self.access_key)

    def _identity(self) -> tuple[str, str | None, str]:
        return self.access_key, self._security_token, self._secret_key

    def __repr__(self) -> str:
        return f"{type(self).__name__}(access_key={self.access_key!r})"

    def before_request(
        self, address: str, request: Request[Any], fields: dict[str, str], body: RawBody | None
    ) -> None:
        """Add the access key and the signature of everything the request says."""
        fields[ACCESS_KEY] = self.access_key
        if self._security_token is not None:
            fields[SECURITY_TOKEN] = self._security_token
        fields[SIGNATURE] = self.sign(fields, body)

    def sign(self, fields: dict[str, str], body: RawBody | None) -> str:
        """The signature of a header and body; an older signature among the fields does not count."""
        return signature_of(signed_content(fields, body), self._secret_key)


def keys_from_yaml(path: str | Path) -> tuple[str, str, str | None]:
    """(access key, secret key, security token) of a file as mqadmin's `conf/tools.yml`. `ClientError` if it cannot
    be read or has no keys."""
    import yaml

    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{path}: cannot be read: {error}") from error
    except yaml.YAMLError:  # its own text would show the line with the secret
        raise InvalidArgument(f"{path}: not YAML") from None
    if not isinstance(content, dict):
        raise InvalidArgument(f"{path}: expected accessKey and secretKey")
    words = {name: content.get(name) for name in ("accessKey", "secretKey", "securityToken")}
    if not words["accessKey"] or not words["secretKey"]:
        raise InvalidArgument(f"{path}: expected accessKey and secretKey")
    token = words["securityToken"]
    return str(words["accessKey"]), str(words["secretKey"]), None if token is None else str(token)
