"""Property text as the official broker stores it: in the order in which its hash map yields the names.

A Java `HashMap` yields entries by bucket, and inside a bucket by age. 5.x starts with 128 buckets, 4.x with 16, and
both double at three quarters full; so the order of the same properties differs between them. 4.x leaves out the
last separator. Clients do not care; a byte-for-byte comparison of two stores does.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from pocketmq.protocol.properties import encode_properties_text
from pocketmq.protocol.tags import java_hash

_FIRST_BUCKETS: Final = {4: 16, 5: 128}


def stored_properties(
    properties: Mapping[str, str], emulate: int, *, first_buckets: int | None = None
) -> bytes:
    """The bytes for a record. `emulate` is 4 or 5 (`MessageDecoder.messageProperties2String`).

    `first_buckets` where the official broker does not read these properties from a text but makes a map of its own.
    """
    names, form = _form(tuple(properties), emulate, first_buckets or _FIRST_BUCKETS[emulate])
    return (form % tuple([properties[name] for name in names])).encode("utf-8", "replace")


@lru_cache(maxsize=8192)
def _form(names: tuple[str, ...], emulate: int, buckets: int) -> tuple[tuple[str, ...], str]:
    """The names in stored order, and the text with a place for each value: a sender uses few sets of names."""
    ordered = java_order(names, buckets)
    places = {name.replace("%", "%%"): "%s" for name in ordered}
    return ordered, encode_properties_text(places, final_separator=emulate >= 5)


@lru_cache(maxsize=8192)
def java_order(names: tuple[str, ...], buckets: int) -> tuple[str, ...]:
    """`names` as a `HashMap` that began with so many buckets yields them after they were put in that order."""
    while len(names) > buckets * 3 // 4:
        buckets *= 2

    def bucket(name: str) -> int:
        code = java_hash(name) & 0xFFFFFFFF
        return (code ^ code >> 16) & (buckets - 1)

    return tuple(sorted(names, key=bucket))
