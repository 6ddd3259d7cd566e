"""Property text as the official broker stores it: in the order of Java's hash map.

5.x creates the map with 128 buckets and 4.x with 16, so the order of the same properties differs. 4.x omits the last
separator. Clients do not depend on the order, but stores can be compared byte for byte.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Final

from pocketmq.protocol.message.java_strings import hash_map_order
from pocketmq.protocol.message.properties import encode_properties_text


def stored_properties(
    properties: Mapping[str, str], *, is_5: bool, first_buckets: int | None = None
) -> bytes:
    """The bytes for a record (`MessageDecoder.messageProperties2String`).

    `first_buckets` is the size of the official map if the official broker did not read the properties from a text.
    """
    names = tuple(properties)
    is_short = len(names) <= _CACHED_NAMES and sum(map(len, names)) <= _CACHED_CHARACTERS
    make_form = _cached_form if is_short else _form
    values_of, form = make_form(names, is_5, first_buckets or (128 if is_5 else 16))
    return (form % values_of(properties)).encode("utf-8", "replace")


_CACHED_NAMES: Final = 32
_CACHED_CHARACTERS: Final = 1024
"""Longer sets of names are not cached: 2,048 sets take 20 MiB at most."""


def _form(
    names: tuple[str, ...], is_5: bool, buckets: int
) -> tuple[Callable[[Mapping[str, str]], object], str]:
    """A function that picks the values in stored order, and the text with a `%s` for each."""
    ordered = hash_map_order(names, buckets)
    slots = {name.replace("%", "%%"): "%s" for name in ordered}
    form = encode_properties_text(slots, final_separator=is_5)
    # For one name itemgetter returns the value itself, which `%` accepts too; it needs at least one name.
    return itemgetter(*ordered) if ordered else lambda _: (), form


_cached_form: Final = lru_cache(maxsize=2048)(_form)
"""Senders use few different sets of names."""
