"""Hashes of index keys: the absolute value of Java's string hash of `topic#key`, or `topic#T#tags` for tags.

Java's hash of a text continues that of its beginning. Keys of a producer share all but their last characters (a counter
or a time), so the hashes of beginnings are cached.
"""

from functools import lru_cache
from typing import Final

from pocketmq.protocol.message.java_strings import extend_hash

_TAIL_CHARACTERS: Final = 4
_LONGEST_CACHED: Final = 64


@lru_cache(maxsize=1024)
def hash_starts(topic: str) -> tuple[int, int]:
    """Java's hashes of `topic#` and `topic#T#`, 0 ... 2^32-1."""
    start = extend_hash(0, topic + "#")
    return start, extend_hash(start, "T#")


def key_hash(start: int, key: str) -> int:
    """The hash of a key or of tags, 0 ... 2^31-1; `start` is that of the text before it."""
    if len(key) <= _LONGEST_CACHED:
        value = extend_hash(_beginning(start, key[:-_TAIL_CHARACTERS]), key[-_TAIL_CHARACTERS:])
    else:
        value = extend_hash(start, key)
    # Java's Math.abs of the signed reading, with its one negative result made 0.
    return value if value < 0x80000000 else (0x1_0000_0000 - value) & 0x7FFFFFFF


_beginning: Final = lru_cache(maxsize=8192)(extend_hash)
