"""The text of a table's file, made in slices, so that another thread may run in between.

The thread that writes tables calls it with copies. Making the text of 100,000 topics takes most of a second, and all
threads share one interpreter: after each slice the event loop gets its turn.
"""

import time
from collections.abc import Mapping
from typing import Any, Final

from pocketmq.protocol.text import fastjson

ENTRIES_IN_A_SLICE: Final = 100


def file_text(members: Mapping[str, Any]) -> bytes:
    """The pretty text of an object, as `fastjson.dumps` makes it; a member that is `bytes` is a text by itself."""
    parts = [
        b'\t"%b":%b' % (name.encode(), value if isinstance(value, bytes) else _dumps(value))
        for name, value in sorted(members.items())
        if value is not None
    ]
    return b"{\n" + b",\n".join(parts) + b"\n}"


class MapText:
    """The text of one large map, a member of a file. It remembers the order of the keys, so that the next sorting is
    quick, and with `is_cached` the text of each value, which must be immutable."""

    def __init__(self, *, is_cached: bool) -> None:
        self._is_cached = is_cached
        self._keys: list[str] = []
        self._texts: dict[str, tuple[Any, bytes]] = {}

    def of(self, table: Mapping[str, Any]) -> bytes:
        """The text of the map. Values that are maps are copied first, because their owner changes them."""
        known = dict.fromkeys(self._keys)
        keys = [key for key in known if key in table]
        keys += [key for key in table if key not in known]
        keys.sort()
        self._keys = keys
        if not keys:
            return b"{}"
        parts = self._cached_parts(keys, table) if self._is_cached else _parts(keys, table)
        return b"{" + b",".join(parts) + b"\n\t}"

    def _cached_parts(self, keys: list[str], table: Mapping[str, Any]) -> list[bytes]:
        before, texts = self._texts, dict[str, tuple[Any, bytes]]()
        for number, key in enumerate(keys):
            value, known = table[key], before.get(key)
            texts[key] = (value, _entries({key: value})) if known is None or known[0] is not value else known
            if number % ENTRIES_IN_A_SLICE == 0:
                time.sleep(0)
        self._texts = texts
        return [text for _, text in texts.values()]


def _parts(keys: list[str], table: Mapping[str, Any]) -> list[bytes]:
    parts = []
    for first in range(0, len(keys), ENTRIES_IN_A_SLICE):
        values = ((key, table[key]) for key in keys[first : first + ENTRIES_IN_A_SLICE])
        parts.append(_entries({key: value.copy() if type(value) is dict else value for key, value in values}))
        time.sleep(0)
    return parts


def _entries(entries: dict[str, Any]) -> bytes:
    """The entries of a map without its braces."""
    return _dumps(entries)[1:-3]


def _dumps(value: Any) -> bytes:
    return fastjson.dumps(value, pretty=True, quote_integer_keys=True, level=1)
