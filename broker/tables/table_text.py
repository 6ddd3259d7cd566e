"""The text of a table's file, made in pieces, so that another thread may run in between.

The thread that writes tables calls it with copies. Making the text of 100,000 topics takes most of a second, and all
threads share one interpreter: no piece takes longer than a millisecond or two, and the writer rests after each.
"""

from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import merge
from itertools import islice
from threading import Lock
from typing import Any, Final

from pocketmq.protocol.text import fastjson

ENTRIES_IN_A_SLICE: Final = 100


def file_pieces(members: Mapping[str, Any]) -> Iterator[bytes]:
    """The pretty text of an object, as `fastjson.dumps` makes it; a member that is an iterator has pieces."""
    separator = b"{\n"
    for name, value in sorted(members.items()):
        if value is not None:
            yield b'%b\t"%b":' % (separator, name.encode())
            if isinstance(value, Iterator):
                yield from value
            else:
                yield _dumps(value)
            separator = b",\n"
    yield b"\n}"


class MapText:
    """The text of one large map, a member of a file. It remembers the order of the keys, so that the next sorting is
    quick, and the text of each value, which must be immutable. Values that their owner changes are not remembered, but
    copied by `copy_of` before they are read."""

    def __init__(self, copy_of: Callable[[Any], Any] | None = None) -> None:
        self._copy_of = copy_of
        self._used = Lock()
        self._keys: list[str] = []
        self._texts: dict[str, tuple[Any, bytes] | None] = {}
        """Of the same keys."""

    def pieces(self, table: Mapping[str, Any]) -> Iterator[bytes]:
        """The text of the map, whose keys stay as they are meanwhile; some pieces are empty. In use already, by the
        writer's thread or by a write that the disk has refused, it makes the text without what it remembers."""
        if not self._used.acquire(blocking=False):
            yield from MapText(self._copy_of).pieces(table)
            return
        try:
            yield from self._pieces(table)
        finally:
            self._used.release()

    def _pieces(self, table: Mapping[str, Any]) -> Iterator[bytes]:
        yield from self._sort_keys(table)
        separator = b"{"
        for keys in _slices(self._keys):
            yield separator + (
                self._known_text(keys, table) if self._copy_of is None else self._text(keys, table)
            )
            separator = b","
        yield b"\n\t}" if self._keys else b"{}"

    def _sort_keys(self, table: Mapping[str, Any]) -> Iterator[bytes]:
        """Without a new list of all keys where nearly all are known: each garbage collection would walk through it."""
        texts, gone = self._texts, list[str]()
        for keys in _slices(self._keys):
            gone += [key for key in keys if key not in table]
            yield b""
        if gone:
            self._keys = [key for key in self._keys if key in table]
        for key in gone:
            del texts[key]
        added = list[list[str]]()
        if len(texts) < len(table):
            for keys in _slices(table):
                added.append(sorted(key for key in keys if key not in texts))
                yield b""
        if sum(map(len, added)) <= ENTRIES_IN_A_SLICE:
            for keys in added:
                for key in keys:
                    insort(self._keys, key)
        else:
            in_order = list[str]()
            for keys in _slices(merge(self._keys, *filter(None, added))):
                in_order += keys
                yield b""
            self._keys = in_order
        for keys in added:
            texts.update(dict.fromkeys(keys))

    def _known_text(self, keys: list[str], table: Mapping[str, Any]) -> bytes:
        texts = []
        for key in keys:
            value, known = table[key], self._texts.get(key)
            if known is None or known[0] is not value:
                known = self._texts[key] = (value, _entries({key: value}))
            texts.append(known[1])
        return b",".join(texts)

    def _text(self, keys: list[str], table: Mapping[str, Any]) -> bytes:
        assert self._copy_of is not None
        return _entries({key: self._copy_of(table[key]) for key in keys})


def _slices(keys: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(keys)
    while found := list(islice(rest, ENTRIES_IN_A_SLICE)):
        yield found


def _entries(entries: dict[str, Any]) -> bytes:
    """The entries of a map without its braces."""
    return _dumps(entries)[1:-3]


def _dumps(value: Any) -> bytes:
    return fastjson.dumps(value, pretty=True, quote_integer_keys=True, level=1)
