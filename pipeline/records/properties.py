"""Property texts to columns: single properties by name, and the map of all.

    name 0x01 value 0x02  name 0x01 value 0x02  ...      of each record, as `pocketmq.protocol.message.properties`
    reads it

The texts of all records are split once into one long list of pairs; `_rows` says which record each pair belongs to.
If a record has a name twice, which is rare, the last pair wins, as in Java.
"""

from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .columns import STRING_MAP
from .slices import slices

_PAIR_END: Final = "\x02"
_NAME_END: Final = "\x01"
_NAME_END_BYTE: Final = ord(_NAME_END)
_PAIR_END_BYTE: Final = ord(_PAIR_END)
_BITS: Final = 62
_Pairs = tuple[Any, Any, npt.NDArray[np.int64]]


class Properties:
    """The properties of a batch of records, from their texts (a string array without nulls)."""

    def __init__(self, texts: Any) -> None:
        self._count = len(texts)
        self._names, self._values, self._rows = _alternating(texts) or _split(texts)
        self._drop_empty()

    def _drop_empty(self) -> None:
        filled = (_lengths(self._names) > 0) & (_lengths(self._values) > 0)
        if not filled.all():
            self._keep(filled)

    def _keep(self, mask: Any) -> None:
        self._names = self._names.filter(pa.array(mask))
        self._values = self._values.filter(pa.array(mask))
        self._rows = self._rows[mask]
        if "_codes" in self.__dict__:
            self._codes = self._codes[mask]

    def values(self, name: str) -> Any:
        """The value of one property in each record, null if a record lacks it."""
        code = self._code_of.get(name)
        if code is None:
            return pa.nulls(self._count, self._values.type)
        found = np.flatnonzero(self._codes == code)
        where = np.full(self._count, -1, dtype=np.int64)
        where[self._rows[found]] = found
        return self._values.take(pa.array(where, mask=where < 0))

    def maps(self) -> Any:
        """The map of each record."""
        self._drop_repeated_names()
        edges = np.zeros(self._count + 1, dtype=np.int32)
        np.cumsum(np.bincount(self._rows, minlength=self._count), out=edges[1:])
        return pa.MapArray.from_arrays(pa.array(edges), self._names, self._values).cast(STRING_MAP)

    @cached_property
    def _code_of(self) -> dict[str, int]:
        """A number for each name: comparing numbers for each requested column is cheaper than comparing texts."""
        encoded = self._names.dictionary_encode()
        self._codes = np.asarray(encoded.indices).astype(np.int64)
        return {name: code for code, name in enumerate(encoded.dictionary.to_pylist())}

    @cached_property
    def _codes(self) -> npt.NDArray[np.int64]:
        return np.asarray(self._names.dictionary_encode().indices).astype(np.int64)

    def _drop_repeated_names(self) -> None:
        """Keep the last pair of each name of a record."""
        if not self._has_repeated_names():
            return
        keys = self._rows * (self._codes.max() + 1) + self._codes
        _, last = np.unique(keys[::-1], return_index=True)
        mask = np.zeros(len(keys), dtype=np.bool_)
        mask[len(keys) - 1 - last] = True
        self._keep(mask)

    def _has_repeated_names(self) -> bool:
        """Whether a record has a name twice.

        With one bit for each name, the sum of a record's bits then differs from their union.
        """
        codes = self._codes
        if not len(codes):
            return False
        if codes.max() >= _BITS:
            keys = self._rows * (codes.max() + 1) + codes
            return len(np.unique(keys)) < len(keys)
        bits = np.int64(1) << codes
        first = np.flatnonzero(np.diff(self._rows, prepend=-1))
        sums, unions = np.add.reduceat(bits, first), np.bitwise_or.reduceat(bits, first)
        return bool((sums != unions).any())


def _alternating(texts: Any) -> _Pairs | None:
    """(names, values, row of each) of texts in which the two separators alternate, as in nearly all; None if any text
    is different. A text may end without its last separator."""
    edges = np.frombuffer(texts.buffers()[1], dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    if not len(texts) or edges[0] == edges[-1]:
        return None
    raw = np.frombuffer(texts.buffers()[2], dtype=np.uint8)[: edges[-1]]
    at = np.flatnonzero(raw - _NAME_END_BYTE < 2).astype(np.int64)  # bytes below wrap around
    at = at[np.searchsorted(at, edges[0]) :]
    marks = raw[at]
    begins, ends = edges[:-1], edges[1:]
    open_ends = ends[(ends > begins) & (raw[ends - 1] != _PAIR_END_BYTE)]
    after = at + 1
    if len(open_ends):
        where = np.searchsorted(at, open_ends)
        at, after = np.insert(at, where, open_ends), np.insert(after, where, open_ends)
        marks = np.insert(marks, where, _PAIR_END_BYTE)
    name_end, value_end = at[0::2], at[1::2]
    if len(at) % 2 or (marks[0::2] != _NAME_END_BYTE).any() or (marks[1::2] != _PAIR_END_BYTE).any():
        return None
    name_begin = np.concatenate((edges[:1].astype(np.int64), after[1:-1:2]))
    names = slices(raw, name_begin, name_end, texts.type)
    values = slices(raw, name_end + 1, value_end, texts.type)
    return names, values, np.repeat(np.arange(len(texts)), np.diff(np.searchsorted(name_end, edges)))


def _split(texts: Any) -> _Pairs:
    """(names, values, row of each) of any texts."""
    lists = pc.split_pattern(texts, _PAIR_END)
    rows = np.repeat(np.arange(len(texts)), np.diff(np.asarray(lists.offsets)))
    halves = pc.split_pattern(lists.flatten(), _NAME_END, max_splits=1)
    # The empty rest after a last separator is not a pair, and neither is a name without a value.
    whole = np.diff(np.asarray(halves.offsets)) == 2
    flat = halves.flatten()
    name_at = np.asarray(halves.offsets)[:-1][whole]
    return flat.take(pa.array(name_at)), flat.take(pa.array(name_at + 1)), rows[whole]


def _lengths(texts: Any) -> Any:
    return np.asarray(pc.binary_length(texts))
