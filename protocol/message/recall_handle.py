"""The recall handle: the text by which a producer cancels a delayed message (5.x, `recallMessageEnable`).

    URL-safe Base64 of   v1 SP topic SP broker name SP delivery time + 1 (ms) SP message id

A broker returns it with the send; the producer sends it back with RECALL_MESSAGE. Mirrors `RecallMessageHandle`.
"""

import base64
from typing import Final

import msgspec

from ..errors import BodyError

_VERSION: Final = "v1"
_PARTS: Final = 5


class RecallHandle(msgspec.Struct, frozen=True):
    """A decoded handle. `deliver_ms` is kept as text: the broker checks it after topic and broker name."""

    topic: str
    broker_name: str
    deliver_ms: str
    message_id: str

    def encode(self) -> str:
        text = f"{_VERSION} {self.topic} {self.broker_name} {self.deliver_ms} {self.message_id}"
        return base64.urlsafe_b64encode(text.encode()).decode()


def decode_recall_handle(text: str) -> RecallHandle:
    """Raises BodyError, in the official words, for a text that is no handle. More than five parts are read as five."""
    try:
        raw = base64.b64decode(text.encode() + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        parts = raw.decode().split(" ")
    except ValueError:
        raise BodyError("recall handle is invalid") from None
    if len(parts) < _PARTS or parts[0] != _VERSION:
        raise BodyError("recall handle is invalid")
    return RecallHandle(*parts[1:_PARTS])
