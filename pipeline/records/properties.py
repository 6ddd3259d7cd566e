"""Property texts to columns: single properties by name, and the map of all.

    name 0x01 value 0x02  name 0x01 value 0x02  ...      of each record, as `pocketmq.protocol.message.properties`
    reads it

The texts of all records are split once into one long list of pairs: where each name and each value begins and ends, and
the record it belongs to. A name is found by comparing its length and its first eight bytes as one number, so a column
of one property touches no other values. If a record has a name twice, which is rare, the last pair wins, as in Java.
"""

from functools import cached_property
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .columns import STRING_MAP
from .slices import Ints, slices, spread
from .uniform_properties import NAME_END, PAIR_END, uniform_properties

_FEW: Final = 16
"""Texts of an irregular form are looked for among so many; these are then split one by one."""
_NUMBER_BYTES: Final = 8
_MASKS: Final = np.array(
    [(1 << 8 * count) - 1 for count in range(_NUMBER_BYTES + 1)], dtype=np.uint64
)  # little-endian: the first bytes of a name are the low ones
_Bytes = npt.NDArray[np.uint8]


class _Pairs(msgspec.Struct):
    """Where names and values begin and end in the bytes of the texts, and the row of each pair, which never falls."""

    name_begin: Ints
    name_end: Ints
    value_begin: Ints
    value_end: Ints
    rows: Ints

    def only(self, mask: Any) -> "_Pairs":
        """The pairs for which the mask is true; also accepts indexes."""
        return _Pairs(
            self.name_begin[mask],
            self.name_end[mask],
            self.value_begin[mask],
            self.value_end[mask],
            self.rows[mask],
        )


class Properties:
    """The properties of a batch of records, from their texts (a string array without nulls)."""

    def __init__(self, texts: Any) -> None:
        self._count = len(texts)
        self._type = texts.type
        self._raw, self._edges = _bytes_and_edges(texts)
        self._separators = _separators(self._raw, self._edges)
        self._uniform = uniform_properties(self._raw, self._edges, self._separators, self._type)

    @cached_property
    def _pairs(self) -> _Pairs:
        pairs = _pairs_of(self._raw, self._edges, self._separators)
        filled = (pairs.name_end > pairs.name_begin) & (pairs.value_end > pairs.value_begin)
        return pairs if filled.all() else pairs.only(filled)

    def values(self, name: str) -> Any:
        """The value of one property in each record, null if a record lacks it."""
        if self._uniform is not None:
            return self._uniform.values(name)
        found = self._find(name)
        rows = self._pairs.rows[found]
        if len(rows) > 1 and (rows[1:] == rows[:-1]).any():  # a name twice
            last = np.append(rows[1:] != rows[:-1], True)
            found, rows = found[last], rows[last]
        values = slices(self._raw, self._pairs.value_begin[found], self._pairs.value_end[found], self._type)
        return spread(values, rows, self._count)

    def maps(self) -> Any:
        """The map of each record."""
        if self._uniform is not None:
            return self._uniform.maps()
        pairs = self._pairs.only(self._last_of_each_name()) if self._has_repeated_names() else self._pairs
        edges = np.zeros(self._count + 1, dtype=np.int32)
        np.cumsum(np.bincount(pairs.rows, minlength=self._count), out=edges[1:])
        names = slices(self._raw, pairs.name_begin, pairs.name_end, self._type)
        values = slices(self._raw, pairs.value_begin, pairs.value_end, self._type)
        return pa.MapArray.from_arrays(pa.array(edges), names, values).cast(STRING_MAP)

    # -- names as numbers

    @cached_property
    def _lengths(self) -> Ints:
        return self._pairs.name_end - self._pairs.name_begin

    @cached_property
    def _numbers(self) -> npt.NDArray[np.uint64]:
        """The first eight bytes of each name as a number; those after a shorter name are left out."""
        raw = self._raw
        if len(raw) < _NUMBER_BYTES or (
            len(self._pairs.rows) and self._pairs.name_begin[-1] + _NUMBER_BYTES > len(raw)
        ):
            raw = np.concatenate((raw, np.zeros(_NUMBER_BYTES, dtype=np.uint8)))
        words = np.ndarray(shape=(len(raw) - _NUMBER_BYTES + 1,), dtype="<u8", buffer=raw, strides=(1,))
        numbers: npt.NDArray[np.uint64] = words[self._pairs.name_begin]
        numbers &= _MASKS[np.minimum(self._lengths, _NUMBER_BYTES)]
        return numbers

    def _find(self, name: str) -> Ints:
        """Which pairs have this name."""
        wanted = name.encode()
        number = np.frombuffer(wanted[:_NUMBER_BYTES].ljust(_NUMBER_BYTES, b"\0"), dtype="<u8")[0]
        found = np.flatnonzero((self._numbers == number) & (self._lengths == len(wanted)))
        if len(wanted) > _NUMBER_BYTES and len(found):
            rest = np.frombuffer(wanted, dtype=np.uint8)[_NUMBER_BYTES:]
            at = self._pairs.name_begin[found][:, None] + np.arange(_NUMBER_BYTES, len(wanted))
            found = found[(self._raw[at] == rest).all(axis=1)]
        return found

    def _codes(self) -> Ints:
        """A number for each name: equal names have equal numbers."""
        names = slices(self._raw, self._pairs.name_begin, self._pairs.name_end, pa.binary())
        return np.asarray(names.dictionary_encode().indices).astype(np.int64)

    def _has_repeated_names(self) -> bool:
        """Whether a record may have a name twice: two of its names with the same first bytes and the same length."""
        keys = self._numbers * np.uint64(31) + self._lengths.astype(np.uint64)
        rows = self._pairs.rows
        counts = np.bincount(rows, minlength=self._count)
        widest = int(counts.max(initial=0))
        return any(
            ((keys[step:] == keys[:-step]) & (rows[step:] == rows[:-step])).any() for step in range(1, widest)
        )

    def _last_of_each_name(self) -> Any:
        """Which pairs are the last of their name in their record."""
        codes = self._codes()
        keys = self._pairs.rows * (codes.max(initial=0) + 1) + codes
        _, last = np.unique(keys[::-1], return_index=True)
        mask = np.zeros(len(keys), dtype=np.bool_)
        mask[len(keys) - 1 - last] = True
        return mask


def _bytes_and_edges(texts: Any) -> tuple[_Bytes, Ints]:
    """The bytes of all texts, and where each begins and the last ends."""
    if not len(texts):
        return np.empty(0, dtype=np.uint8), np.zeros(1, dtype=np.int64)
    edges = np.frombuffer(texts.buffers()[1], dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = texts.buffers()[2]
    raw = np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, dtype=np.uint8)
    return raw, edges.astype(np.int64)


def _separators(raw: _Bytes, edges: Ints) -> Ints:
    """Where the separators are in the texts between the edges."""
    first, last = int(edges[0]), int(edges[-1])
    at = np.flatnonzero(raw[first:last] - np.uint8(NAME_END) < 2)  # bytes below wrap around
    if first:
        at += first
    return at


def _pairs_of(raw: _Bytes, edges: Ints, separators: Ints) -> _Pairs:
    """The pairs of the texts between the edges. Where a text has another form, only the texts around it are split one
    by one."""
    found = _alternating(raw, edges, separators)
    if found is not None:
        return found
    count = len(edges) - 1
    if count <= _FEW:
        return _one_by_one(raw, edges)
    half = count // 2
    cut = int(np.searchsorted(separators, edges[half]))
    left = _pairs_of(raw, edges[: half + 1], separators[:cut])
    right = _pairs_of(raw, edges[half:], separators[cut:])
    right.rows += half
    return _Pairs(
        *(
            np.concatenate((getattr(left, name), getattr(right, name)))
            for name in ("name_begin", "name_end", "value_begin", "value_end", "rows")
        )
    )


def _alternating(raw: _Bytes, edges: Ints, at: Ints) -> _Pairs | None:
    """The pairs of texts in which the two separators alternate, as in nearly all; None if any text is different. A text
    may end without its last separator."""
    marks = raw[at]
    begins, ends = edges[:-1], edges[1:]
    filled = ends > begins
    open_ends = ends[filled][raw[ends[filled] - 1] != PAIR_END]
    after = at + 1
    if len(open_ends):
        where = np.searchsorted(at, open_ends)
        at, after = np.insert(at, where, open_ends), np.insert(after, where, open_ends)
        marks = np.insert(marks, where, PAIR_END)
    name_end, value_end = at[0::2], at[1::2]
    if len(at) % 2 or (marks[0::2] != NAME_END).any() or (marks[1::2] != PAIR_END).any():
        return None
    name_begin = np.concatenate((edges[:1], after[1:-1:2])) if len(at) else name_end
    counts = np.diff(np.searchsorted(name_end, edges))
    return _Pairs(name_begin, name_end, name_end + 1, value_end, np.repeat(np.arange(len(begins)), counts))


def _one_by_one(raw: _Bytes, edges: Ints) -> _Pairs:
    """The pairs of texts of any form, in a Python loop."""
    found: list[tuple[int, int, int, int, int]] = []
    for row, (begin, end) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
        for pair in raw[begin:end].tobytes().split(bytes((PAIR_END,))):
            name, separator, value = pair.partition(bytes((NAME_END,)))
            if separator:
                name_end = begin + len(name)
                found.append((begin, name_end, name_end + 1, name_end + 1 + len(value), row))
            begin += len(pair) + 1
    table = np.array(found, dtype=np.int64).reshape(len(found), 5)
    return _Pairs(*(np.ascontiguousarray(column) for column in table.T))
