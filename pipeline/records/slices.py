"""Arrow arrays of texts and bytes without a Python loop over them: slices of one buffer, or one text repeated.

bytes   | head | body one | ... | head | body two | ...
edges          0          1            2          3       offsets of one long array: every other element is a slice
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]

_FEW: Final = 16
"""Texts of which one cannot be decoded: so many are decoded one by one."""


def slices(raw: npt.NDArray[np.uint8], begin: Ints, end: Ints, kind: Any) -> Any:
    """`raw[begin:end]` of each pair, as an array of `kind`: binary, or string if the bytes are known to be UTF-8.

    `OverflowError` if the slices span more than 2 GiB.
    """
    count = len(begin)
    if not count:
        return pa.array([], type=kind)
    first = int(begin[0])
    edges = np.empty(2 * count, dtype=np.int64)
    edges[0::2] = begin
    edges[1::2] = end
    edges -= first
    if edges[-1] >= 1 << 31:
        raise OverflowError(f"{edges[-1]} bytes of records in one batch; at most 2 GiB")
    buffers = [None, pa.py_buffer(edges.astype(np.int32)), pa.py_buffer(raw[first : int(end[-1])])]
    whole = pa.Array.from_buffers(kind, 2 * count - 1, buffers)
    return whole.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int64)))


def repeated(text: str | None, count: int) -> Any:
    """One text, `count` times.

    With an explicit type, because without one pyarrow searches for modules on every call.
    """
    return pa.repeat(pa.scalar(text, pa.string()), count)


def text_of(binary: Any) -> Any:
    """UTF-8 bytes as text; undecodable bytes become U+FFFD, as in Java.

    Halves of an array with such bytes are tried again, so that only the texts around them are decoded one by one.
    """
    try:
        return binary.cast(pa.string())
    except pa.ArrowInvalid:
        if len(binary) > _FEW:
            half = len(binary) // 2
            return pa.concat_arrays([text_of(binary.slice(0, half)), text_of(binary.slice(half))])
        texts = [None if raw is None else raw.decode("utf-8", "replace") for raw in binary.to_pylist()]
        return pa.array(texts, type=pa.string())
