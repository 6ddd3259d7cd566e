"""A `struct.Struct` of many equal parts, for units and entries that are packed or read at once.

One takes 130 bytes of memory for each part, so only short ones are kept.
"""

import struct
from functools import lru_cache
from typing import Final

_MOST_KEPT: Final = 256
"""Parts; the cache then takes 4 MiB at most."""


def repeated_struct(part: str, count: int) -> struct.Struct:
    """`count` parts, big-endian, one behind the other."""
    return _kept(part, count) if count <= _MOST_KEPT else struct.Struct(">" + part * count)


@lru_cache(256)
def _kept(part: str, count: int) -> struct.Struct:
    return struct.Struct(">" + part * count)
