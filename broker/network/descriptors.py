"""Keeps file descriptors back for the store: connections must not take the last ones.

The system gives each socket the lowest free descriptor, so its number says how many are in use, by whatever part of the
process. A connection whose descriptor lies in the share of the store is closed at once.
"""

import asyncio
import logging
from typing import Final

from pocketmq.store.files.open_maps import most_queue_maps

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_log = logging.getLogger("pocketmq.network")

FOR_FILES: Final = 64
"""For the files of the log, the index, the tables and the journal."""
REFUSALS_LOGGED_SECONDS: Final = 60.0


class Descriptors:
    """Decides for one port whether a new connection has room."""

    def __init__(self) -> None:
        self._most = most_for_connections()
        self._refused = 0
        self._logged_at = -REFUSALS_LOGGED_SECONDS

    def has_room(self, descriptor: int, peer: str, now: float) -> bool:
        """Whether a connection with this descriptor may stay; if not, close it. Refusals are logged once a minute of
        `now`, in seconds."""
        if descriptor < self._most:
            return True
        self._refused += 1
        if now >= self._logged_at + REFUSALS_LOGGED_SECONDS:
            self._logged_at = now
            _log.error(
                "closing %s, %d connections were refused so far: %d file descriptors are in use, the rest is kept "
                "for the files of the store; raise the limit (ulimit -n)",
                peer,
                self._refused,
                descriptor,
            )
        return False


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
