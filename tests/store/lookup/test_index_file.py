"""Entries that are added together leave the same bytes as one by one: chains, times, ends, header, the next file."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given
from hypothesis import strategies as st
from pocketmq.store import StoreConfig
from pocketmq.store.clock import VirtualClock
from pocketmq.store.lookup.index_file import IndexEntry
from pocketmq.store.lookup.key_index import KeyIndex

SLOTS, UNITS = 5, 40
HOUR_MS = 3_600_000

hashes = st.integers(0, 12) | st.integers(0, 0x7FFFFFFF)
records = st.lists(
    st.tuples(st.lists(hashes, max_size=4), st.integers(0, 3), st.integers(-HOUR_MS, HOUR_MS)), max_size=60
)


def entries_of(drawn: list[tuple[list[int], int, int]]) -> list[IndexEntry]:
    """In log order; a step of 0 is a record that comes twice."""
    entries, position, now = [], 100, 1_790_000_000_000
    for key_hashes, step, later_ms in drawn:
        position += 200 * step
        now += later_ms
        entries.append((key_hashes, position, now))
    return entries


def files_after(pieces: list[list[IndexEntry]]) -> list[bytes]:
    with TemporaryDirectory() as folder:
        config = StoreConfig(store_path_root_dir=folder, max_hash_slot_num=SLOTS, max_index_num=UNITS)
        index = KeyIndex(config, VirtualClock())
        index.load(intact=True, flushed_timestamp=0)
        for piece in pieces:
            index.put(piece)
        return [Path(file.file.path).read_bytes() for file in index.files]


@given(records, st.integers(1, 60))
@example([([3, 8, 3, 3], 1, 1000)] * 9, 60)
@example([([3, 8], 1, 1000)] * 30, 60)
def test_entries_added_together_leave_the_bytes_of_entries_added_alone(drawn, size):
    entries = entries_of(drawn)
    pieces = [entries[at : at + size] for at in range(0, len(entries), size)]
    assert files_after(pieces) == files_after([[entry] for entry in entries])
