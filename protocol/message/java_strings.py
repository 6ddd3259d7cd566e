"""How Java hashes and orders strings: `String.hashCode`, `String.compareTo`, and the order of a `HashMap`'s keys.

Official programs let these orders show on the wire and on disk: in tag codes, in the properties of a stored message,
in what is signed, in who reads which queue.
"""

import sys
from collections.abc import Iterable
from typing import Final

_UTF16: Final = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"


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


def java_sort_key(text: str) -> bytes:
    """Sort key that orders texts as `String.compareTo`: by UTF-16 unit, where Python goes by character."""
    return text.encode("utf-16-be", "surrogatepass")


def hash_map_order(keys: Iterable[str], buckets: int = 16) -> list[str]:
    """Distinct keys in the order in which a `HashMap` yields them after they were put in the order given.

    A map yields by bucket, and inside a bucket by age. `buckets` is its first capacity; it doubles at three quarters
    full.
    """
    names = list(keys)
    while len(names) > buckets * 3 // 4:
        buckets *= 2

    def bucket(name: str) -> int:
        code = extend_hash(0, name)
        return (code ^ code >> 16) & (buckets - 1)

    return sorted(names, key=bucket)
