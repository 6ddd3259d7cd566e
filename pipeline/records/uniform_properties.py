"""Property texts that all have the same names in the same order, as those of one producer have: a grid of separators.

    KEYS 0x01 k7 0x02 TAGS 0x01 A 0x02       0: | 4   7 | 12  14 |      a row for each text: where each separator is
    KEYS 0x01 k8 0x02 TAGS 0x01 B 0x02       1: | 19 22 | 27  29 |      a column for each property

Then a property is a column of the grid, and the names are those of the first text, repeated. Texts of any other form
are read by `properties.py`.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .columns import STRING_MAP
from .slices import Ints, slices, slices_between

NAME_END: Final = 1
PAIR_END: Final = 2
_NUMBER_BYTES: Final = 8
_Bytes = npt.NDArray[np.uint8]
_Grid = npt.NDArray[np.int32]


class UniformProperties:
    """The properties of texts with equal names. `ends` has two columns for each: where its name and its value end."""

    def __init__(self, raw: _Bytes, begins: Ints, ends: _Grid, names: list[bytes], kind: Any) -> None:
        self._raw = raw
        self._begins = begins
        self._ends = ends
        self._names = names
        self._type = kind

    def values(self, name: str) -> Any:
        """The value of one property in each record, null if they lack it."""
        wanted = name.encode()
        if wanted not in self._names:
            return pa.nulls(len(self._ends), self._type)
        column = 2 * self._names.index(wanted)
        return slices(self._raw, self._ends[:, column] + 1, self._ends[:, column + 1], self._type)

    def maps(self) -> Any:
        """The map of each record."""
        count, width = len(self._ends), len(self._names)
        edges = np.arange(0, count * width + 1, width, dtype=np.int32)
        is_name_end = np.arange(2 * width, dtype=np.int32) % 2 ^ 1
        values = slices_between(self._raw, (self._ends + is_name_end).reshape(-1), self._type)
        return pa.MapArray.from_arrays(pa.array(edges), self._repeated_names(), values).cast(STRING_MAP)

    def _repeated_names(self) -> Any:
        count, text = len(self._ends), b"".join(self._names)
        lengths = [len(name) for name in self._names]
        edges = np.empty(count * len(lengths) + 1, dtype=np.int32)
        firsts = np.arange(count, dtype=np.int32)[:, None] * np.int32(len(text))
        np.add(firsts, np.cumsum([0, *lengths[:-1]], dtype=np.int32), out=edges[:-1].reshape(count, -1))
        edges[-1] = count * len(text)
        buffers = [None, pa.py_buffer(edges), pa.py_buffer(text * count)]
        return pa.Array.from_buffers(self._type, len(edges) - 1, buffers)


def uniform_properties(raw: _Bytes, edges: Ints, separators: Ints, kind: Any) -> UniformProperties | None:
    """None if the texts differ in their names, or have a name twice, or an empty name or value."""
    begins, text_ends = edges[:-1], edges[1:]
    count = len(begins)
    if not count or not len(separators) or len(raw) >= 1 << 31:
        return None
    width, rest = divmod(len(separators), count)
    if rest:
        return None
    grid = separators.astype(np.int32).reshape(count, width)
    if width % 2:  # no text has its last separator
        if (grid[:, 0] < begins).any() or (grid[:, -1] >= text_ends).any():
            return None
        grid = np.column_stack((grid, text_ends.astype(np.int32)))
    elif (grid[:, -1] != text_ends - 1).any():
        return None
    if (raw[grid[:, 0::2]] != NAME_END).any() or (
        raw[separators.reshape(count, width)[:, 1::2]] != PAIR_END
    ).any():
        return None
    lengths = np.diff(grid, axis=1, prepend=(begins - 1).astype(np.int32)[:, None])
    if (lengths <= 1).any():
        return None
    names = _equal_names(raw, begins, grid)
    return None if names is None else UniformProperties(raw, begins, grid, names, kind)


def _equal_names(raw: _Bytes, begins: Ints, grid: _Grid) -> list[bytes] | None:
    """The names of the first text if all texts have them."""
    names = []
    for column in range(0, grid.shape[1], 2):
        begin = begins if not column else grid[:, column - 1] + 1
        length = int(grid[0, column] - begin[0])
        if (grid[:, column] - begin != length).any() or not _is_equal(raw, begin, length):
            return None
        names.append(raw[int(begin[0]) : int(begin[0]) + length].tobytes())
    return names if len(set(names)) == len(names) else None


def _is_equal(raw: _Bytes, begin: Any, length: int) -> bool:
    """Whether the bytes of this length at all positions are equal: compared as numbers, the last of which may overlap
    the one before."""
    step = min(length, _NUMBER_BYTES)
    step = 1 << step.bit_length() - 1  # 1, 2, 4 or 8
    numbers = np.ndarray(shape=(len(raw) - step + 1,), dtype=f"u{step}", buffer=raw, strides=(1,))
    for offset in {*range(0, length - step + 1, step), length - step}:
        found = numbers[begin + offset] if offset else numbers[begin]
        if (found != found[0]).any():
            return False
    return True
