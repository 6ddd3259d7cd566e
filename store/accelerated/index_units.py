"""The units of many keys in a file of the key index. The drawing with widths is in `lookup/index_file.py`."""

import mmap
import struct
from collections.abc import Sequence

from .choice import chosen
from .repeated_struct import repeated_struct

SLOTS_AT, UNIT_BYTES = 40, 20
_INT = struct.Struct(">i")
_PACK_INT, _READ_INT = _INT.pack_into, _INT.unpack_from
_PACK_UNIT = struct.Struct(">iqii").pack_into


def add_units(
    memory: mmap.mmap | bytearray,
    slots: int,
    units_at: int,
    first: int,
    hashes: Sequence[int],
    positions: Sequence[int],
    seconds: int,
) -> int:
    """Write a unit for each hash, in order, and make it the newest of its slot; returns how many slots were empty.

    Slots are `slots` numbers from byte 40 on, units begin at byte `units_at`; the first new one has the number `first`,
    at least 1. A slot that names no older unit counts as empty. Each unit is written before its slot, so that a process
    that dies between them leaves no slot without a unit. Raises ValueError, struct.error or IndexError for what does
    not fit the file.
    """
    slots_at = [SLOTS_AT + 4 * (key_hash % slots) for key_hash in hashes]
    added = len(slots_at)
    if len(set(slots_at)) < added:
        return _add_one_by_one(memory, slots_at, units_at, first, hashes, positions, seconds)
    newest = [_READ_INT(memory, slot_at)[0] for slot_at in slots_at]
    fields = [seconds] * (4 * added)
    fields[0::4], fields[1::4] = hashes, positions
    fields[3::4] = previous = [number if 0 < number < first else 0 for number in newest]
    repeated_struct("iqii", added).pack_into(memory, units_at + UNIT_BYTES * first, *fields)
    for number, slot_at in enumerate(slots_at, first):
        _PACK_INT(memory, slot_at, number)
    return previous.count(0)


def _add_one_by_one(
    memory: mmap.mmap | bytearray,
    slots_at: Sequence[int],
    units_at: int,
    first: int,
    hashes: Sequence[int],
    positions: Sequence[int],
    seconds: int,
) -> int:
    """For keys of which two have one slot: the newer has the older behind it."""
    of_batch: set[int] = set()
    empty = 0
    for number, (slot_at, key_hash, position) in enumerate(
        zip(slots_at, hashes, positions, strict=True), first
    ):
        (previous,) = _READ_INT(memory, slot_at)
        if slot_at not in of_batch and not 0 < previous < first:
            previous = 0
            empty += 1
        of_batch.add(slot_at)
        _PACK_UNIT(memory, units_at + UNIT_BYTES * number, key_hash, position, seconds, previous)
        _PACK_INT(memory, slot_at, number)
    return empty


add_units = chosen(add_units)
