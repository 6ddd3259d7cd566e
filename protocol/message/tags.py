"""Java's `String.hashCode`, and the tag code that consumers filter by.

The broker stores the hash of a tag, not the tag: a subscription is matched by comparing low 32 bits, and the client
compares the text once more. Not here: tag expressions (`bodies/subscription.py`).
"""

import sys

_UTF16 = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"


def extend_hash(start: int, text: str) -> int:
    """Continue a Java string hash over the UTF-16 units of `text`; unsigned 32 bit in and out.

    `extend_hash(extend_hash(0, a), b)` is the hash of `a + b`.
    """
    value = start
    units = text.encode() if text.isascii() else memoryview(text.encode(_UTF16, "surrogatepass")).cast("H")
    for unit in units:
        value = (31 * value + unit) & 0xFFFFFFFF
    return value


def java_hash(text: str) -> int:
    """`String.hashCode()` of `text`, a signed 32-bit number."""
    value = extend_hash(0, text)
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value


def tags_code(tags: str | None) -> int:
    """The tag code stored in a queue unit: 0 without tags, else the hash of the whole TAGS text."""
    return java_hash(tags) if tags else 0
