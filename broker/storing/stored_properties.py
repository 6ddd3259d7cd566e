"""Property text as the official broker stores it: in the order in which its hash map yields the names.

5.x starts the map with 128 buckets and 4.x with 16, so the order of the same properties differs between them. 4.x
leaves out the last separator. Clients do not care; a byte-for-byte comparison of two stores does.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Final

from pocketmq.protocol.message.java_strings import hash_map_order
from pocketmq.protocol.message.properties import encode_properties_text

_FIRST_BUCKETS: Final = {4: 16, 5: 128}


def stored_properties(
    properties: Mapping[str, str], emulate: int, *, first_buckets: int | None = None
) -> bytes:
    """The bytes for a record. `emulate` is 4 or 5 (`MessageDecoder.messageProperties2String`).

    `first_buckets` where the official broker does not read these properties from a text but makes a map of its own.
    """
    values_of, form = _form(tuple(properties), emulate, first_buckets or _FIRST_BUCKETS[emulate])
    return (form % values_of(properties)).encode("utf-8", "replace")


@lru_cache(maxsize=8192)
def _form(
    names: tuple[str, ...], emulate: int, buckets: int
) -> tuple[Callable[[Mapping[str, str]], object], str]:
    """What takes the values in stored order, and the text with a place for each: a sender uses few sets of names."""
    ordered = hash_map_order(names, buckets)
    places = {name.replace("%", "%%"): "%s" for name in ordered}
    form = encode_properties_text(places, final_separator=emulate >= 5)
    # Of one name it takes the value itself, which fits one place as well; it cannot be made of none.
    return itemgetter(*ordered) if ordered else lambda _: (), form
