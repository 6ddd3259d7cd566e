"""The hashes of unique ids, by which the key index finds them."""

from collections.abc import Sequence

from pocketmq.protocol.message.batch import UNIQUE_ID_BYTES
from pocketmq.protocol.message.java_strings import extend_hash

from .choice import chosen


def hash_ids(start: int, ids: Sequence[bytes]) -> list[int]:
    """The absolute value of Java's hash of a text and each id behind it; `start` is the hash of the text.

    Java's smallest int has no absolute value: 0 stands for it. Raises ValueError for an id that is not 32 ASCII
    characters.
    """
    hashes = []
    for unique_id in ids:
        if len(unique_id) != UNIQUE_ID_BYTES or not unique_id.isascii():
            raise ValueError(f"a unique id is 32 ASCII characters, got {unique_id!r}")
        value = extend_hash(start, unique_id.decode())
        hashes.append(value if value < 0x80000000 else (0x1_0000_0000 - value) & 0x7FFFFFFF)
    return hashes


hash_ids = chosen(hash_ids)
