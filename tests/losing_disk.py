"""A disk that loses unsynced data on a power loss, as real ones may: pages lost, or torn at 512 bytes.

`LosingDisk` wraps the calls that sync files and folders, and records what each file and folder held at that moment.
`lose_power` changes the directory to a state that the disk could be in afterwards:

    a page changed since it was forced    the new one, the old one, or a mixture sector by sector
    a file whose entry was never forced   there, there without length, or not there; of several the later ones go first
    a folder whose entry was never forced there, or not there, with all that is in it
    a removal that was never forced       undone, or not (all of them alike: file systems keep their order)

It can also fail to sync (EIO). The store runs on real files all the time. It reads only its own directory; used by
`test_power_loss.py` and, for the timer's files, `test_timer_power_loss.py`.
"""

import errno
import mmap
import os
import random
import shutil
from pathlib import Path

import pytest
from pocketmq.store.files import disk

PAGE_BYTES = 4096
SECTOR_BYTES = 512


class LosingDisk:
    """`forced` and `entries` are what survives a power loss."""

    def __init__(
        self, root: Path, chance: random.Random, monkeypatch: pytest.MonkeyPatch | None = None
    ) -> None:
        """Without `monkeypatch` the caller passes on what is forced."""
        self._root = root
        self._chance = chance
        self.forced: dict[Path, tuple[int, bytes]] = {}
        """Inode and content: a file made anew under an old name has nothing of the old one."""
        self._kept: dict[int, mmap.mmap] = {}
        """A map of each forced file: while it exists, no new file gets the inode."""
        self.entries: set[Path] = set()
        """Files and folders."""
        self.broken = False
        if monkeypatch is not None:
            monkeypatch.setattr(disk, "sync_descriptor", self.sync)
            monkeypatch.setattr(disk, "force_directory", self.force_directory)

    def sync(self, descriptor: int) -> None:
        """fdatasync and fsync of a file."""
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if not path.is_relative_to(self._root) or not path.is_file():
            return
        if self.broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self.was_forced(path, path.read_bytes())

    def was_forced(self, path: Path, content: bytes) -> None:
        """The disk has this content of a file."""
        with path.open("rb") as file:
            inode = os.fstat(file.fileno()).st_ino
            if inode not in self._kept and content:
                self._kept[inode] = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        self.forced[path] = inode, content

    def force_directory(self, path: Path) -> None:
        self.entries = {entry for entry in self.entries if entry.parent != path}
        self.entries.update(path.iterdir())
        renamed = {
            inode: (inode, content) for other, (inode, content) in self.forced.items() if other.parent == path
        }
        for entry in path.iterdir():
            inode = entry.stat().st_ino
            if inode in renamed and self.forced.get(entry, (0, b""))[0] != inode:
                self.forced[entry] = renamed[inode]
        self.forced = {
            file: forced for file, forced in self.forced.items() if file.parent != path or file.exists()
        }
        inodes = {inode for inode, _ in self.forced.values()}
        self._kept = {inode: kept for inode, kept in self._kept.items() if inode in inodes}

    def moved(self, root: Path) -> None:
        """The directory has another name now."""
        former, self._root = self._root, root
        self.forced = {root / path.relative_to(former): forced for path, forced in self.forced.items()}
        self.entries = {root / path.relative_to(former) for path in self.entries}

    def lose_power(self) -> None:
        """Rewrite the directory; the store that had it open must not write any more."""
        present = [path for path in sorted(self._root.rglob("*")) if path.is_file()]
        undo_removals = self._chance.random() < 0.5
        for folder in sorted(path for path in self._root.rglob("*") if path.is_dir()):
            if folder not in self.entries and folder.exists() and self._chance.random() < 0.5:
                shutil.rmtree(folder)
        present = [path for path in present if path.exists()]
        for path in sorted(self.entries):
            if path not in present and path in self.forced and undo_removals and path.parent.exists():
                path.write_bytes(self.forced[path][1])
        for path in present:
            inode, forced = self.forced.get(path, (0, b""))
            torn = self._torn(path.read_bytes(), forced if inode == path.stat().st_ino else b"")
            path.unlink()  # it may have a second name, whose bytes are its own
            path.write_bytes(torn)
        self._lose_entries([path for path in present if path not in self.entries])
        self.forced.clear()
        self._kept.clear()
        self.entries.clear()
        self.entries.update(self._root.rglob("*"))  # what the next start reads is what the disk holds
        for path in self.entries:
            if path.is_file():
                self.was_forced(path, path.read_bytes())

    def _lose_entries(self, unforced: list[Path]) -> None:
        for folder in sorted({path.parent for path in unforced}):
            names = sorted(path for path in unforced if path.parent == folder)
            keep = self._chance.randint(0, len(names))
            for path in names[keep:]:
                path.unlink()
            if keep and names[keep - 1].parent.name != "index" and self._chance.random() < 0.3:
                names[keep - 1].write_bytes(b"")

    def _torn(self, new: bytes, old: bytes) -> bytes:
        old = old.ljust(len(new), b"\0")[: len(new)]
        pieces = []
        for at in range(0, len(new), PAGE_BYTES):
            fresh, stale = new[at : at + PAGE_BYTES], old[at : at + PAGE_BYTES]
            fate = self._chance.random()
            if fresh == stale or fate < 0.4:
                pieces.append(fresh)
            elif fate < 0.7:
                pieces.append(stale)
            else:
                sectors = range(0, len(fresh), SECTOR_BYTES)
                pieces += [self._chance.choice((fresh, stale))[one : one + SECTOR_BYTES] for one in sectors]
        return b"".join(pieces)
