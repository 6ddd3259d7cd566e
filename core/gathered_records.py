"""The records that units of a queue name, copied out of the log. The drawing of a unit is in `lookup/queue_unit.py`."""

import struct

from .choice import choose

_RECORDS = struct.Struct(">qi8x").iter_unpack


def gather_records(units: memoryview, log: memoryview, base: int) -> bytes:
    """The records that the units name, one behind the other. `log` has the bytes of the log from position `base` on.

    Raises ValueError for a record that does not lie in them.
    """
    records = []
    for position, size in _RECORDS(units):
        start = position - base
        if not 0 <= start <= start + size <= len(log):
            raise ValueError(f"the record of {size} bytes at {position} does not lie in this part of the log")
        records.append(log[start : start + size])
    return b"".join(records)


gather_records = choose(gather_records)
