"""The signature of a gRPC request: the metadata `authorization` and `x-mq-date-time`.

    authorization: MQv2-HMAC-SHA1 Credential=admin, SignedHeaders=x-mq-date-time, Signature=a41438a5...
    Signature    = hex of HMAC-SHA1(the user's password, the text of x-mq-date-time)

The age of the date is not checked: the official proxy does not check it either. Mirrors
`DefaultAuthenticationContextBuilder`, with its texts.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from ..calls.handler import RpcRefused
from ..messages import Code

AUTHORIZATION: Final = "authorization"
DATE: Final = "x-mq-date-time"


class Signed(msgspec.Struct, frozen=True):
    """Who says that it sent the request; `content` is what was signed."""

    username: str
    content: str
    signature: bytes


def unauthorized(text: str) -> RpcRefused:
    return RpcRefused(Code.UNAUTHORIZED, text)


def read_signature(metadata: Mapping[str, str]) -> Signed:
    """Raises `RpcRefused` with UNAUTHORIZED for a header that cannot be read; without one, all parts are empty."""
    header = metadata.get(AUTHORIZATION)
    if header is None:
        return Signed("", "", b"")
    content = metadata.get(DATE)
    if content is None:
        raise unauthorized("datetime is null.")
    _, blank, pairs = header.partition(" ")
    if not blank:
        raise unauthorized("authentication header is incorrect.")
    parts: dict[str, str] = {}
    for pair in pairs.split(","):
        name, equals, value = pair.strip().partition("=")
        if not equals:
            raise unauthorized("authentication keyValues length is incorrect, actual length=1.")
        parts[name.strip()] = value.strip()
    try:
        signature = bytes.fromhex(parts.get("Signature", ""))
    except ValueError:
        raise unauthorized("create authentication context error.") from None
    return Signed(parts.get("Credential", "").partition("/")[0], content, signature)


def is_signed_with(password: str, signed: Signed) -> bool:
    """Whether the signature is right. A wrong one takes as long to check as the right one."""
    import hmac  # 2 MB of OpenSSL that most brokers never need

    right = hmac.digest(password.encode(), signed.content.encode(), "sha1")
    return hmac.compare_digest(right, signed.signature)
