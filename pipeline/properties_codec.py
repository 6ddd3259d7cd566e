"""Property texts to columns: single properties by name, and the map of all.

    name 0x01 value 0x02  name 0x01 value 0x02  ...      of each record, as `pocketmq.protocol.properties` reads it

The texts are split once into one long list of pairs, whatever number of records they belong to; `pair_rows` says of
which record each is. Equal names in one record are rare, and the last one wins as in Java. Next: `encoder.py`, the way
back.
"""

from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .columns import STRING_MAP

_PAIR_END: Final = "\x02"
_NAME_END: Final = "\x01"
_BITS: Final = 62


class Properties:
    """The properties of a batch of records, from their texts (a string array without nulls)."""

    def __init__(self, texts: Any) -> None:
        self._count = len(texts)
        lists = pc.split_pattern(texts, _PAIR_END)
        pairs = lists.flatten()
        rows = np.repeat(np.arange(self._count), np.diff(np.asarray(lists.offsets)))
        halves = pc.split_pattern(pairs, _NAME_END, max_splits=1)
        # A text ends in a separator or does not: the empty rest behind it is no pair, and neither is half of one.
        widths = np.diff(np.asarray(halves.offsets))
        flat = halves.flatten()
        first = np.asarray(halves.offsets)[:-1]
        whole = widths == 2
        name_at = first[whole]
        self._names = flat.take(pa.array(name_at))
        self._values = flat.take(pa.array(name_at + 1))
        self._rows: npt.NDArray[np.int64] = rows[whole]
        self._drop_empty()

    def _drop_empty(self) -> None:
        empty = pc.or_(
            pc.equal(pc.binary_length(self._names), 0), pc.equal(pc.binary_length(self._values), 0)
        )
        if pc.any(empty).as_py():
            self._keep(np.asarray(pc.invert(empty)))

    def _keep(self, mask: Any) -> None:
        self._names = self._names.filter(pa.array(mask))
        self._values = self._values.filter(pa.array(mask))
        self._rows = self._rows[mask]
        if "_codes" in self.__dict__:
            self._codes = self._codes[mask]

    def values(self, name: str) -> Any:
        """The value of one property in each record, null where it has none."""
        code = self._code_of.get(name)
        if code is None:
            return pa.nulls(self._count, self._values.type)
        found = np.flatnonzero(self._codes == code)
        where = np.full(self._count, -1, dtype=np.int64)
        where[self._rows[found]] = found
        return self._values.take(pa.array(where, mask=where < 0))

    def maps(self) -> Any:
        """The map of each record."""
        self._drop_doubles()
        edges = np.zeros(self._count + 1, dtype=np.int32)
        np.cumsum(np.bincount(self._rows, minlength=self._count), out=edges[1:])
        return pa.MapArray.from_arrays(pa.array(edges), self._names, self._values).cast(STRING_MAP)

    @cached_property
    def _code_of(self) -> dict[str, int]:
        """A number for each name there is: comparing numbers for each column asked is cheaper than comparing texts."""
        encoded = self._names.dictionary_encode()
        self._codes = np.asarray(encoded.indices).astype(np.int64)
        return {name: code for code, name in enumerate(encoded.dictionary.to_pylist())}

    @cached_property
    def _codes(self) -> npt.NDArray[np.int64]:
        return np.asarray(self._names.dictionary_encode().indices).astype(np.int64)

    def _drop_doubles(self) -> None:
        """Leave the last of equal names of one record."""
        if not self._has_doubles():
            return
        keys = self._rows * (self._codes.max() + 1) + self._codes
        _, last = np.unique(keys[::-1], return_index=True)
        mask = np.zeros(len(keys), dtype=np.bool_)
        mask[len(keys) - 1 - last] = True
        self._keep(mask)

    def _has_doubles(self) -> bool:
        """Every name as a bit: the sum of a record's bits is their union, unless one came twice."""
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
