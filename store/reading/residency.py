"""Is a stored message in memory ("hot") or only on disk ("cold")? Three answers, one interface.

`distance`    hot while the log has not run ahead of the record by more than a share of the machine's memory,
              accessMessageInMemoryMaxRatio per cent. The rule of 4.x; batch limits always follow it.
`resident`    asks the operating system whether the record's pages are in the page cache: 5.1 and later on Java 11.
`always-hot`  what 5.x does on Java 14 and later, where the operating system cannot be asked.

The answer decides whether a new consumer group starts at 0 or by its own rule. Official methods:
checkInDiskByConsumeOffset, checkInMemByConsumeOffset, estimateInMemByCommitOffset.
"""

import ctypes
import mmap
import os
from collections.abc import Callable
from pathlib import Path

from ..config import StoreConfig
from ..log.commit_log import CommitLog

IsHot = Callable[[int, int], bool]
"""Whether an existing record counts as in memory; position and size in bytes."""

_UNKNOWN_MEMORY_BYTES = 24 << 30
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class MemoryBudget:
    """How many bytes of log count as in memory, by the current settings."""

    def __init__(self, config: StoreConfig) -> None:
        self._config = config
        self._total_bytes = total_memory_bytes()

    @property
    def bytes(self) -> int:
        total = self._config.memory_size_bytes
        if total is None:
            total = self._total_bytes
        return int(total * (self._config.access_message_in_memory_max_ratio / 100.0))


class _PageCache:
    """Asks the page cache through mincore(2); hot where the system has no such call, as in the official broker."""

    def __init__(self, log: CommitLog) -> None:
        self._log = log
        self._mincore: Callable[..., int] | None = None
        try:
            self._mincore = ctypes.CDLL(None, use_errno=True).mincore
        except (OSError, AttributeError, TypeError):
            pass

    def is_hot(self, position: int, size: int) -> bool:
        file = self._log.files.file_at(position)
        if self._mincore is None or file is None:
            return True
        first = (position - file.base) // mmap.PAGESIZE * mmap.PAGESIZE
        length = min(position - file.base + size, file.size) - first
        if length <= 0:
            return True
        pages = (ctypes.c_ubyte * -(-length // mmap.PAGESIZE))()
        address = ctypes.addressof(ctypes.c_char.from_buffer(file.map, first))
        if self._mincore(ctypes.c_void_p(address), ctypes.c_size_t(length), pages) != 0:
            return True
        return all(page & 1 for page in pages)


def make_residency(config: StoreConfig, log: CommitLog, budget: MemoryBudget) -> IsHot:
    """The policy that `config.residency` names."""
    if config.residency == "resident":
        return _PageCache(log).is_hot
    if config.residency == "always-hot":
        return lambda position, size: True
    return lambda position, size: log.end - position <= budget.bytes


def total_memory_bytes() -> int:
    """Physical memory, or what the container is allowed of it, as a JVM reports it; 24 GiB if unknown."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return _UNKNOWN_MEMORY_BYTES
    for path in _CGROUP_LIMITS:
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        if text.isdecimal():
            total = min(total, int(text))
    return total
