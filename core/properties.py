"""The property text of a record, from that of a request and what the broker adds.

The official broker reads the text into a hash map, puts its own properties in, and writes the map: 5.x makes it with
128 buckets, 4.x with 16, so the order of the same properties differs. 4.x omits the last separator. Stores can be
compared byte for byte.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Final

from pocketmq.protocol.message.java_strings import hash_map_order
from pocketmq.protocol.message.properties import decode_properties, encode_properties_text

from . import choice

BUCKETS: Final = {False: 16, True: 128}
"""Of the official hash map: in the 4.9 line, in 5.x."""

Changes = tuple[str | None, ...]
"""Names and values in turns, in the order in which they are put; None as a value removes the property."""


@choice.try_in_c
def stored_text(text: bytes | memoryview, changes: Changes, buckets: int, has_final_separator: bool) -> bytes:
    """The text of a record: the properties of `text`, changed, in the order of a hash map with so many buckets.

    The one in C returns None for more than 96 properties, or if the text is not UTF-8.
    """
    return encode_stored(_apply_changes(text, changes), buckets, has_final_separator)


@choice.try_in_c
def read_values(text: bytes | memoryview, changes: Changes, names: tuple[str, ...]) -> tuple[str | None, ...]:
    """The values of the properties with these names in `text`, changed; None for those that it has not.

    The one in C returns None where `stored_text` does.
    """
    properties = _apply_changes(text, changes)
    return tuple([properties.get(name) for name in names])


def _apply_changes(text: bytes | memoryview, changes: Changes) -> dict[str, str]:
    properties = decode_properties(text)
    for name, value in zip(changes[0::2], changes[1::2], strict=True):
        assert name is not None
        if value is None:
            properties.pop(name, None)
        else:
            properties[name] = value
    return properties


@choice.try_in_c
def read_properties(text: bytes | memoryview) -> dict[str, str]:
    """The properties of a text. The one in C returns None for a text that is not UTF-8."""
    return decode_properties(text)


def encode_stored(properties: dict[str, str], buckets: int, has_final_separator: bool) -> bytes:
    """The text of properties in the order of a hash map that they were put into one after the other."""
    names = tuple(properties)
    is_short = len(names) <= _CACHED_NAMES and sum(map(len, names)) <= _CACHED_CHARACTERS
    make_form = _cached_form if is_short else _form
    values_of, form = make_form(names, buckets, has_final_separator)
    return (form % values_of(properties)).encode("utf-8", "replace")


_CACHED_NAMES: Final = 32
_CACHED_CHARACTERS: Final = 1024
"""Longer sets of names are not cached: 2,048 sets take 20 MiB at most."""


def _form(
    names: tuple[str, ...], buckets: int, has_final_separator: bool
) -> tuple[Callable[[Mapping[str, str]], object], str]:
    """A function that picks the values in stored order, and the text with a `%s` for each."""
    ordered = hash_map_order(names, buckets)
    slots = {name.replace("%", "%%"): "%s" for name in ordered}
    form = encode_properties_text(slots, final_separator=has_final_separator)
    # For one name itemgetter returns the value itself, which `%` accepts too; it needs at least one name.
    return itemgetter(*ordered) if ordered else lambda _: (), form


_cached_form: Final = lru_cache(maxsize=2048)(_form)
"""Senders use few different sets of names."""
