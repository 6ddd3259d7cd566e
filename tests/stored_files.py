"""For tests that compare two ways to the same store: what lies in a store's folder, file by file."""

from pathlib import Path

_OF_A_RUN = frozenset(("abort", "lock", "checkpoint"))
"""Files that say something about the process, not about messages."""


def stored_files(folder: Path) -> dict[str, bytes]:
    """Path -> content without the zeros at its end, of every file that holds messages, their places or counts."""
    return {
        str(path.relative_to(folder)): path.read_bytes().rstrip(b"\0")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in _OF_A_RUN
    }
