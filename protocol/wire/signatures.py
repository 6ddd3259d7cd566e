"""Signatures of requests, for brokers with access control.

    Signature = Base64(HMAC-SHA1(secret key, content))
    content   = values of all header fields but Signature, in the order of their names, then the body

Names are ordered as Java orders strings. The other two fields named here are part of the content. Which field old
clients leave unsigned is decided where signatures are checked (`broker/access/signatures.py`). Mirrors
`AclUtils.combineRequestContent` and `AclSigner`.
"""

from base64 import b64encode
from collections.abc import Collection, Mapping
from typing import Final

from ..message.java_strings import java_sort_key
from .command import RawBody

ACCESS_KEY: Final = "AccessKey"
SECURITY_TOKEN: Final = "SecurityToken"
SIGNATURE: Final = "Signature"


def signed_content(
    fields: Mapping[str, str], body: RawBody | None, *, unsigned: Collection[str] = ()
) -> bytes:
    """The bytes that are signed. `unsigned` names further fields that do not count."""
    names = sorted(fields.keys() - {SIGNATURE, *unsigned}, key=java_sort_key)
    return "".join([fields[name] for name in names]).encode() + bytes(body or b"")


def signature_of(content: bytes, secret_key: str) -> str:
    """The value of the field Signature."""
    import hmac  # 2 MB of OpenSSL that most programs never need

    return b64encode(hmac.digest(secret_key.encode(), content, "sha1")).decode()
