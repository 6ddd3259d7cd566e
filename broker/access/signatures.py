"""Checks the signature of a request.

What is signed is defined in `pocketmq.protocol.wire.signatures`, the same for both lines except one field that old
clients leave unsigned. What a user may do is in `plain_acl.py` (4.9) and `authorization.py` (5.x). Nothing here logs.
"""

from typing import Final

from pocketmq.protocol.languages import V4_9_3
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.signatures import SIGNATURE, signature_of, signed_content

_UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"
"""Added by clients up to V4_9_3 after the signing."""


def is_signed_with(secret_key: str, command: Command, *, is_5: bool) -> bool:
    """Whether the command has the right signature. Takes as long for a wrong one as for the right one.

    4.9 never counts _UNIQUE_KEY_QUERY; 5.x counts it for clients newer than V4_9_3 only.
    """
    import hmac  # 2 MB of OpenSSL that most brokers never need

    fields = command.fields or {}
    signature = fields.get(SIGNATURE)
    if signature is None:
        return False
    unsigned = (_UNIQUE_KEY_QUERY,) if not is_5 or command.version <= V4_9_3 else ()
    right = signature_of(signed_content(fields, command.body, unsigned=unsigned), secret_key)
    return hmac.compare_digest(right.encode(), signature.encode("utf-8", "surrogatepass"))
