"""Keeps file descriptors back for the store: connections must not take the last ones.

The system gives each socket the lowest free descriptor, so its number says how many are in use, by whatever part of the
process. A connection whose descriptor lies in the share of the store is closed at once.
"""

import asyncio
from typing import Final

from pocketmq.store.files.open_maps import most_queue_maps

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

FOR_FILES: Final = 64
"""For the files of the log, the index, the tables and the journal."""


def most_for_connections() -> int:
    """The lowest descriptor that is kept for files; half of a very low limit."""
    if resource is None:
        return 1 << 30
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 1 << 30
    return max(soft - most_queue_maps() - FOR_FILES, soft // 2)


def descriptor_of(transport: asyncio.BaseTransport | None) -> int:
    """The number of a connection's socket; -1 without one."""
    fileno = None if transport is None else getattr(transport.get_extra_info("socket"), "fileno", None)
    return -1 if fileno is None else int(fileno())
