"""Property texts to columns: single properties by name, and the map of all.

    name 0x01 value 0x02  name 0x01 value 0x02  ...      of each record, as `pocketmq.protocol.message.properties`
    reads it

The texts of all records are split once into one long list of pairs (`scans.py`): the record
of each, the number of its name, and where its value is. If a record has a name twice, the last pair wins, as in Java.
"""

from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .columns import STRING_MAP
from .scans import PAIR_COLUMNS, list_pairs
from .slices import Ints, scatter, slices, text_of

_Bytes = npt.NDArray[np.uint8]


class _Pairs(msgspec.Struct, frozen=True):
    """The pairs of all texts, in their order."""

    raw: _Bytes
    rows: Ints
    names: list[str]
    """The distinct names."""
    name_of: Ints
    value_begin: Ints
    value_end: Ints

    def of_name(self, number: int, texts: int) -> slice | Ints:
        """Which pairs have this name; a slice if all texts have the same names in the same order, as is usual."""
        width = len(self.names)
        if len(self.rows) == texts * width:  # a name is in a text once at most, so each text has every name
            by_text = self.name_of.reshape(texts, width)
            if (by_text[:, number] == number).all():
                return slice(number, None, width)
        return np.flatnonzero(self.name_of == number)


class Properties:
    """The properties of property texts that lie between `begins` and `ends` in `raw`; both must rise."""

    def __init__(self, raw: _Bytes, begins: Ints, ends: Ints) -> None:
        self._raw = raw
        self._begins = begins
        self._ends = ends

    def values(self, name: str) -> Any:
        """The value of one property in each record, null if a record lacks it."""
        pairs, count = self._pairs, len(self._begins)
        if name not in pairs.names:
            return pa.nulls(count, pa.string())
        found = pairs.of_name(pairs.names.index(name), count)
        values = slices(pairs.raw, pairs.value_begin[found], pairs.value_end[found], pa.binary())
        return scatter(text_of(values), pairs.rows[found], count)

    def maps(self) -> Any:
        """The map of each record."""
        pairs = self._pairs
        edges = np.zeros(len(self._begins) + 1, dtype=np.int32)
        np.cumsum(np.bincount(pairs.rows, minlength=len(self._begins)), out=edges[1:])
        names = pa.array(pairs.names, type=pa.string()).take(pa.array(pairs.name_of))
        values = text_of(slices(pairs.raw, pairs.value_begin, pairs.value_end, pa.binary()))
        return pa.MapArray.from_arrays(pa.array(edges), names, values).cast(STRING_MAP)

    @cached_property
    def _pairs(self) -> _Pairs:
        pairs = _pairs_of(self._raw, self._begins, self._ends)
        if pairs is not None:
            return pairs
        # A name that is not UTF-8 may become equal to another one once both are decoded.
        texts = text_of(slices(self._raw, self._begins, self._ends, pa.binary())).cast(pa.binary())
        edges = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset :][: len(texts) + 1].astype(np.int64)
        pairs = _pairs_of(np.frombuffer(texts.buffers()[2], np.uint8), edges[:-1], edges[1:])
        assert pairs is not None
        return pairs


def _pairs_of(raw: _Bytes, begins: Ints, ends: Ints) -> _Pairs | None:
    """None if a name is not UTF-8."""
    most, count = 8 * len(begins) + 64, -1
    found: list[bytes] = []
    if not len(raw):
        room, count = np.empty((0, len(PAIR_COLUMNS)), dtype=np.int64), 0
    while count < 0:
        room = np.empty((most, len(PAIR_COLUMNS)), dtype=np.int64)
        count, found = list_pairs(raw, np.ascontiguousarray(begins), np.ascontiguousarray(ends), room)
        most *= 4
    rows, name_of, value_begin, value_end = room[:count].T
    try:
        names = [name.decode() for name in found]
    except UnicodeDecodeError:
        return None
    return _Pairs(raw, rows, names, name_of, value_begin, value_end)
