"""For tests that compare two ways to the same store: what lies in a store's folder, file by file."""

import os
from pathlib import Path

from pocketmq.store.files.disk import written_ranges

_OF_A_RUN = frozenset(("abort", "lock", "checkpoint"))
"""Files that say something about the process, not about messages."""


def stored_files(folder: Path) -> dict[str, dict[int, bytes]]:
    """Path -> parts that are not zero, by their place, of every file that holds messages, their places or counts."""
    return {
        str(path.relative_to(folder)): _parts(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in _OF_A_RUN
    }


def _parts(path: Path) -> dict[int, bytes]:
    with path.open("rb") as file:
        parts = {}
        for begin, end in written_ranges(file.fileno(), 0, path.stat().st_size):
            data = os.pread(file.fileno(), end - begin, begin).rstrip(b"\0")
            for at in range(0, len(data), 4096):
                if (part := data[at : at + 4096]).strip(b"\0"):
                    parts[begin + at] = part
        return parts
