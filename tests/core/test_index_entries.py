"""The entries of a file of the key index: C does what Python does."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.core.choice import in_python
from pocketmq.core.records import KEY

REFUSALS = (struct.error, ValueError, IndexError, OverflowError, TypeError, BufferError)


@given(
    slots=st.integers(1, 7),
    first=st.integers(1, 5),
    hashes=st.lists(st.integers(0, 0x7FFFFFFF), max_size=24),
    old=st.binary(min_size=28, max_size=28),
    near=st.lists(st.integers(-2, 16), min_size=7, max_size=7),
    seconds=st.integers(0, 0x7FFFFFFF),
)
def test_entries_of_keys_are_chained_alike(native, slots, first, hashes, old, near, seconds) -> None:
    entries_at = 40 + 4 * slots
    keys = b"".join(KEY.pack(key_hash, 2**40 + number) for number, key_hash in enumerate(hashes))
    for slot_bytes in (old, struct.pack(">7i", *near)):
        memory = bytearray(entries_at + 20 * (first + len(hashes)))
        memory[40:entries_at] = slot_bytes[: 4 * slots]
        maps = memory, bytearray(memory)
        arguments = slots, entries_at, first, keys, seconds, 1 << 40
        assert in_python["add_entries"](maps[0], *arguments) == native.add_entries(maps[1], *arguments)
        assert maps[0] == maps[1]


@pytest.mark.parametrize(
    "arguments",
    [
        (0, 48, 1, KEY.pack(1, 1), 0),
        (2, 48, 0, KEY.pack(1, 1), 0),
        (2, 48, 1, KEY.pack(1, 1)[:-1], 0),
        (2, 48, 9, KEY.pack(1, 1), 0),
        (2, 20, 1, KEY.pack(1, 1), 0),
        (2, 48, 1, KEY.pack(1 << 31, 1), 0),
        (2, 48, 1, "text", 0),
        (2, 48, 1, KEY.pack(1, 1), 1 << 40),
        (2, 48, 1, KEY.pack(1, 1), 0, 1 << 63),
        (2**62, 48, 1, KEY.pack(1, 1), 0),
        (2, 2**62, 1, KEY.pack(1, 1), 0),
        (2, 48, 2**62, KEY.pack(1, 1), 0),
    ],
)
def test_entries_that_do_not_fit_are_refused(native, arguments) -> None:
    memory = bytearray(48 + 40)
    with pytest.raises(REFUSALS):
        native.add_entries(memory, *arguments[:5], *(arguments[5:] or (0,)))
    assert not any(memory)
    with pytest.raises(REFUSALS):
        native.add_entries(bytes(100), 2, 48, 1, KEY.pack(1, 1), 0, 0)


def test_the_header_says_what_was_added(core) -> None:
    memory = bytearray(48 + 100)
    memory[:40] = struct.pack(">qqqqii", 1, 2, 3, 4, 5, 1)
    assert core.add_entries(memory, 2, 48, 1, KEY.pack(1, 8) + KEY.pack(1, 9), 0, 7) == 1
    assert struct.unpack_from(">qqqqii", memory) == (1, 7, 3, 9, 6, 3)
