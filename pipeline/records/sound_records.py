"""The sound records of a log file, found by one loop in C: each is whole, its lengths agree, it lies where it says that
it was stored, and its body has its CRC if that is asked.

The loop ends before the first record that is not sound in every respect. So nothing is judged here: what follows is
read by `files/scan.py` as if there were no C, and so is everything where the extension could not be built. Then the
loop goes on. The same holds for units of consume queues: those that are not proved right here are looked at again.
"""

from typing import Any, Final

import numpy as np
import pyarrow as pa
from pocketmq.protocol.message.record import MIN_RECORD_BYTES

from .native_loops import native
from .records import Flags, Records
from .slices import Ints

COLUMNS: Final = (
    *("starts", "storeSize", "queueId", "queueOffset", "sysFlag", "storeTimestamp"),
    *("bodyAt", "bodyEnd", "topicAt", "topicEnd", "topic"),
)
"""What the loop notes of each record, in its order: numbers of the head, places in the buffer, and which topic."""
_native: Any = native


def is_built() -> bool:
    """Whether the functions in C are used."""
    return _native is not None


def sound_records(
    data: memoryview,
    position: int,
    end: int,
    base: int,
    *,
    most: int,
    checks_crc: bool,
    broker_name: str | None = None,
) -> Records:
    """At most `most` records from `position` on, back to back, that begin before `end`; `base` is the log position of
    byte 0. None at all if the first one is not sound, or without C."""
    if _native is None or position >= end:
        return Records(data, [], broker_name=broker_name)
    most = min(most, (end - position) // MIN_RECORD_BYTES + 1)
    room = np.empty((len(COLUMNS), most), dtype=np.int64)
    count, topics = _native.scan_sound(data, position, end, base, checks_crc, room)
    numbers = dict(zip(COLUMNS, room[:, :count], strict=True))
    starts = numbers.pop("starts")
    numbers["physicalOffset"] = starts + base
    names = pa.array([topic.decode("utf-8", "replace") for topic in topics], type=pa.string())
    return Records(data, starts, broker_name=broker_name, numbers=numbers, topic_names=names)


def own_units(data: memoryview, base: int, positions: Ints, sizes: Ints, queue_id: int, offset: int) -> Flags:
    """Which units of a queue, of which the first has this offset, lead to their own sound record in this file."""
    found = np.zeros(len(positions), dtype=np.bool_)
    if _native is not None:
        _native.match_units(data, base, positions, sizes, queue_id, offset, found)
    return found
