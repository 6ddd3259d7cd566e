"""The entries of many keys in a file of the key index. The drawing with widths is in `store/lookup/index_file.py`."""

import mmap
import struct

from .choice import choose
from .records import KEY, KEY_BYTES

END_TIMESTAMP_AT, END_POSITION_AT, SLOTS_USED_AT, SLOTS_AT = 8, 24, 32, 40
ENTRY_BYTES = 20
_INT = struct.Struct(">i")
_PACK_LONG = struct.Struct(">q").pack_into
_PACK_COUNTS = struct.Struct(">ii").pack_into
_PACK_ENTRY = struct.Struct(">iqii").pack_into


def add_entries(
    memory: mmap.mmap | bytearray | memoryview,
    slots: int,
    entries_at: int,
    first: int,
    keys: bytes,
    seconds: int,
    store_timestamp: int,
) -> int:
    """Write an entry for each key, in order, and make it the newest of its slot; returns how many slots were empty.

    Then the header gets the time, the position of the last key, the slots that are no longer empty, and the number of
    the next entry. `keys` are hashes below 2^31 and log positions (`records.KEY`). Slots are `slots` numbers from byte
    40 on, entries begin at byte `entries_at`; the first new one has the number `first`, at least 1. A slot that names
    no older entry counts as empty. Each entry is written before its slot, so that a process that dies between them
    leaves no slot without an entry. Raises ValueError, struct.error or IndexError for what does not fit the file.
    """
    if len(keys) % KEY_BYTES:
        raise ValueError("a key is cut off")
    if (len(memory) - entries_at) // ENTRY_BYTES < first + len(keys) // KEY_BYTES:
        raise ValueError("the file has no room for these entries")
    if not keys:
        return 0
    own: set[int] = set()
    empty = 0
    for number, (key_hash, position) in enumerate(KEY.iter_unpack(keys), first):
        slot_at = SLOTS_AT + 4 * (key_hash % slots)
        (previous,) = _INT.unpack_from(memory, slot_at)
        if slot_at not in own and not 0 < previous < first:
            previous = 0
            empty += 1
        own.add(slot_at)
        _PACK_ENTRY(memory, entries_at + ENTRY_BYTES * number, key_hash, position, seconds, previous)
        _INT.pack_into(memory, slot_at, number)
    (slots_used,) = _INT.unpack_from(memory, SLOTS_USED_AT)
    _PACK_LONG(memory, END_TIMESTAMP_AT, store_timestamp)
    _PACK_LONG(memory, END_POSITION_AT, position)
    _PACK_COUNTS(memory, SLOTS_USED_AT, slots_used + empty, number + 1)
    return empty


add_entries = choose(add_entries)
