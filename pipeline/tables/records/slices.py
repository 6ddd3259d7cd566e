"""Arrow arrays of texts and bytes without a Python loop over them: slices of one buffer, or one text repeated.

bytes   | head | body one | ... | head | body two | ...
edges          0          1            2          3       offsets of one long array: every other element is a slice
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]

MAX_ONE_BY_ONE: Final = 16
"""Texts of which one cannot be decoded: so many are decoded one by one."""

_HEX: Final = np.frombuffer("".join(f"{byte:02X}" for byte in range(256)).encode(), dtype=np.uint16)
"""Two upper-case digits of each byte."""
_KEPT: Final = 1 << 16
_evens: Any = None
"""Made on use: pyarrow imports pandas for its first array, which a process that only plans does not need."""


def slices(raw: npt.NDArray[np.uint8], begin: Any, end: Any, kind: Any) -> Any:
    """`raw[begin:end]` of each pair, as an array of `kind`: binary, or string if the bytes are known to be UTF-8.

    `OverflowError` if the slices span more than 2 GiB.
    """
    count = len(begin)
    if not count:
        return pa.array([], type=kind)
    first, last = int(begin[0]), int(end[-1])
    if last - first >= 1 << 31:
        raise OverflowError(f"{last - first} bytes of records in one batch; at most 2 GiB")
    edges = np.empty((count, 2), dtype=np.int32)
    np.subtract(begin, first, out=edges[:, 0], casting="unsafe")
    np.subtract(end, first, out=edges[:, 1], casting="unsafe")
    buffers = [None, pa.py_buffer(edges), pa.py_buffer(raw[first:last])]
    whole = pa.Array.from_buffers(kind, 2 * count - 1, buffers)
    return pc.take(whole, _even_numbers(count), boundscheck=False)


def scatter(values: Any, rows: Ints, count: int) -> Any:
    """An array of `count` with these values at these rows, which must rise, and null elsewhere."""
    if len(rows) == count:
        return values
    if not len(rows):
        return pa.nulls(count, values.type)
    where = np.full(count, -1, dtype=np.int64)
    where[rows] = np.arange(len(rows))
    return values.take(pa.array(where, mask=where < 0))


def batch_slices(sizes: Ints, max_rows: int, max_bytes: int) -> list[tuple[int, int]]:
    """Rows [i, j) of each batch: as many as both limits allow, at least one."""
    ends = np.cumsum(sizes)
    cuts = []
    row, count = 0, len(sizes)
    while row < count:
        before = int(ends[row - 1]) if row else 0
        last = int(np.searchsorted(ends, before + max_bytes, side="right"))
        stop = max(row + 1, min(last, row + max_rows, count))
        cuts.append((row, stop))
        row = stop
    return cuts


def _even_numbers(count: int) -> Any:
    """0, 2, 4 ... as an Arrow array. A long one is kept, and slices of it are returned."""
    global _evens
    evens = _evens  # another thread may put a shorter one in its place
    if evens is None or len(evens) < count:
        evens = _evens = pa.array(np.arange(0, 2 * max(count, _KEPT), 2, dtype=np.uint32))
    return evens.slice(0, count)


def repeated(text: str | None, count: int) -> Any:
    """One text, `count` times.

    With an explicit type, because without one pyarrow searches for modules on every call.
    """
    return pa.repeat(pa.scalar(text, pa.string()), count)


def hexadecimal(rows: npt.NDArray[np.uint8]) -> Any:
    """Each row of bytes as upper-case digits."""
    count, width = rows.shape
    edges = np.arange(count + 1, dtype=np.int32) * np.int32(2 * width)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(edges), pa.py_buffer(_HEX[rows])])


def text_of(binary: Any) -> Any:
    """UTF-8 bytes as text; undecodable bytes become U+FFFD, as in Java.

    Halves of an array with such bytes are tried again, so that only the texts around them are decoded one by one.
    """
    try:
        return binary.cast(pa.string())
    except pa.ArrowInvalid:
        if len(binary) > MAX_ONE_BY_ONE:
            half = len(binary) // 2
            return pa.concat_arrays([text_of(binary.slice(0, half)), text_of(binary.slice(half))])
        texts = [None if raw is None else raw.decode("utf-8", "replace") for raw in binary.to_pylist()]
        return pa.array(texts, type=pa.string())
