"""What a message may hold, and the error for bytes that are no message.

Without limits a few bytes make much memory: an empty message inside another takes two bytes on the wire and some
hundred in memory.
"""

from typing import Final

DEPTH: Final = 100
"""Messages inside one another; the limit of the official protobuf libraries."""
VALUES: Final = 5_000
"""Values in one message, all levels together: what the handlers do with each takes up to 20 us. The largest that
clients send have a few hundred."""
FIELD_NUMBER: Final = (1 << 29) - 1
"""The highest field number."""


class MalformedMessage(ValueError):
    """The bytes are not a message of the expected type, or one beyond the limits."""
