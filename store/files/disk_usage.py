"""How full the disks of a store are: one object, which a test can replace.

Mirrors `UtilAll.getDiskPartitionSpaceUsedPercent`.
"""

import math
import shutil
from pathlib import Path
from typing import Protocol


class DiskUsage(Protocol):
    """What retention needs to know about a disk."""

    def used_ratio(self, path: Path) -> float:
        """Share of the disk below a folder that is used, in whole per cent rounded up (0.13); -1.0 if unknown."""


class NoDisk:
    """For a store that does not look at the disk: nothing is known, so nothing is refused or deleted because of it."""

    def used_ratio(self, path: Path) -> float:
        return -1.0


class SystemDisk:
    """Asks the system. Space that only root may use does not count, as for the JVM."""

    def used_ratio(self, path: Path) -> float:
        try:
            disk = shutil.disk_usage(path)
        except OSError:
            return -1.0
        reachable = disk.used + disk.free
        return math.ceil(disk.used * 100 / reachable) / 100 if reachable else -1.0
