"""Signatures of requests: what is signed, and whether a signature is right.

    Signature = Base64(HMAC-SHA1(secret key, content))
    content   = values of all header fields but Signature, in the order of their names, then the body

The same on both lines but for one field that old clients leave unsigned. Mirrors `AclUtils.combineRequestContent` and
`AclSigner`. Who may do what is in `plain_acl.py` (4.9) and `authorization.py` (5.x). Nothing here logs.
"""

from base64 import b64encode
from typing import Final

from pocketmq.protocol.wire.command import Command

ACCESS_KEY: Final = "AccessKey"
SIGNATURE: Final = "Signature"
SECURITY_TOKEN: Final = "SecurityToken"
_UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"
"""Added by clients up to V4_9_3 after the signing."""
_V4_9_3: Final = 399


def signed_content(command: Command, *, emulate: int) -> bytes:
    """The bytes a client signed. Names sort as Java strings do; 4.9 never counts _UNIQUE_KEY_QUERY, 5.x only does for
    clients newer than V4_9_3."""
    fields = command.fields or {}
    skipped = {SIGNATURE}
    if emulate < 5 or command.version <= _V4_9_3:
        skipped.add(_UNIQUE_KEY_QUERY)
    names = sorted(fields.keys() - skipped, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    text = "".join(fields[name] for name in names)
    return text.encode() + bytes(command.body or b"")


def signature_of(content: bytes, secret_key: str) -> str:
    """What a client that knows the secret puts into the field Signature."""
    import hmac  # 2 MB of OpenSSL that most brokers never need

    return b64encode(hmac.digest(secret_key.encode(), content, "sha1")).decode()


def is_signed_with(secret_key: str, command: Command, *, emulate: int) -> bool:
    """Whether the command carries the right signature. Takes as long for a wrong one as for the right one."""
    import hmac

    given = (command.fields or {}).get(SIGNATURE)
    if given is None:
        return False
    right = signature_of(signed_content(command, emulate=emulate), secret_key)
    return hmac.compare_digest(right.encode(), given.encode("utf-8", "surrogatepass"))
