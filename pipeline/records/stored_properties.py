"""The properties of records as they lie in a buffer. Values that nearly every read asks for are found by a loop in C.

It finds what `properties.py` finds, at a fifth of its time, but in texts of ASCII only. Other texts and other names are
read there, and everything where the extension could not be built.
"""

from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pocketmq.protocol.message.properties import KEYS, TAGS, UNIQ_KEY

from .native_loops import native
from .properties import Properties
from .slices import Ints, slices, spread, text_of

USUAL: Final = (KEYS, TAGS, UNIQ_KEY)
_USUAL_BYTES: Final = tuple(name.encode() for name in USUAL)


class StoredProperties:
    """The properties of property texts that lie between `begins` and `ends` in `raw`; both must rise."""

    def __init__(self, raw: npt.NDArray[np.uint8], begins: Ints, ends: Ints) -> None:
        self._raw = raw
        self._begins = begins
        self._ends = ends

    def values(self, name: str) -> Any:
        """The value of one property in each record, null if a record lacks it."""
        places = self._places.get(name)
        if places is None:
            return self._texts.values(name)
        begins, ends = places
        rows = np.flatnonzero(ends)
        if len(rows) < len(ends):
            begins, ends = begins[rows], ends[rows]
        return spread(slices(self._raw, begins, ends, pa.string()), rows, len(self._ends))

    def maps(self) -> Any:
        """The map of each record."""
        return self._texts.maps()

    @cached_property
    def _texts(self) -> Properties:
        return Properties(text_of(slices(self._raw, self._begins, self._ends, pa.binary())))

    @cached_property
    def _places(self) -> dict[str, tuple[Ints, Ints]]:
        """Where each usual value begins and ends, both 0 for a text without it.

        Nothing at all if a text is not ASCII, or without C.
        """
        if native is None:
            return {}
        begins, ends = np.ascontiguousarray(self._begins), np.ascontiguousarray(self._ends)
        places = np.empty((len(USUAL), 2, len(begins)), dtype=np.int64)
        if not native.find_values(self._raw, begins, ends, _USUAL_BYTES, places):
            return {}
        return {name: (begin, end) for name, (begin, end) in zip(USUAL, places, strict=True)}
