"""Checks the signature of a request, whose content is the same in both lines, except for one field that old clients
leave unsigned.
"""

from typing import Final

from pocketmq.protocol.languages import V4_9_3
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.signatures import SIGNATURE, signature_of, signed_content

_UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"
"""A field that clients up to V4_9_3 add after signing."""


def is_signed_with(secret_key: str, command: Command, *, is_5: bool) -> bool:
    """Whether the command has the right signature. A wrong one takes as long to check as the right one.

    4.9 never includes _UNIQUE_KEY_QUERY; 5.x includes it only for clients newer than V4_9_3.
    """
    import hmac  # 2 MB of OpenSSL that most brokers never need

    fields = command.fields or {}
    signature = fields.get(SIGNATURE)
    if signature is None:
        return False
    unsigned = (_UNIQUE_KEY_QUERY,) if not is_5 or command.version <= V4_9_3 else ()
    right = signature_of(signed_content(fields, command.body, unsigned=unsigned), secret_key)
    return hmac.compare_digest(right.encode(), signature.encode("utf-8", "surrogatepass"))
