"""Taking a timed message back: the handle a send returned, and the broker it leads to (5.x, `recallMessageEnable`).

    URL-safe Base64 of   v1 SP topic SP broker name SP deliver time + 1 (ms) SP message id

Mirrors `RecallMessageHandle`.
"""

import base64
from typing import Final

import msgspec

from ..errors import ClientError

VERSION: Final = "v1"
PARTS: Final = 5


class RecallHandle(msgspec.Struct, frozen=True):
    """What a handle says."""

    topic: str
    broker_name: str
    timestamp: str
    message_id: str


def decode_recall_handle(text: str) -> RecallHandle:
    """The parts of a handle; ClientError in the official words for a text that is none."""
    try:
        padded = text + "=" * (-len(text) % 4)
        parts = base64.b64decode(padded, altchars=b"-_", validate=True).decode("utf-8").split(" ")
    except ValueError:
        raise ClientError("recall handle is invalid") from None
    if len(parts) != PARTS or parts[0] != VERSION:
        raise ClientError("recall handle is invalid")
    return RecallHandle(*parts[1:])
