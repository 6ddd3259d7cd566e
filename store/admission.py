"""Whether the store accepts messages now, and why not.

    closed, or a slave        no messages; a slave accepts its master's bytes only
    no room on disk           a queue, the index or the log could not grow: tried again once a second
    disk used up              fuller than the warning level of `retention.py`, which also ends this state
    the disk failed           it refused to force written bytes: final, only opening the store again shows
                              what is left

In every case the messages in the log stay readable. Not here: what a full disk means for dispatch
(`appending.py`). Owner: the event-loop thread, except `record_disk_failure`, which the flusher calls.
"""

import logging

import msgspec

from .clock import Clock
from .config import StoreConfig
from .errors import DiskFailedError

logger = logging.getLogger(__name__)

RETRY_MS = 1000
"""How often a store without room on disk tries again: each try may cost the disk a commit."""


class Admission(msgspec.Struct, eq=False):
    """`accepting` is the answer, kept as a field because it is read for every message."""

    _config: StoreConfig
    _clock: Clock
    _is_open: bool = False
    _retry_at_ms: int | None = None
    accepting: bool = False
    is_disk_used_up: bool = False
    disk_failure: str | None = None

    def open(self) -> None:
        """The store is open; reasons from before are cleared."""
        self._is_open, self._retry_at_ms, self.is_disk_used_up, self.disk_failure = True, None, False, None
        self._decide()

    def close(self) -> None:
        self._is_open, self._retry_at_ms = False, None
        self._decide()

    def _decide(self) -> None:
        self.accepting = (
            self._is_open
            and self._config.broker_role != "SLAVE"
            and self._retry_at_ms is None
            and not self.is_disk_used_up
        )
        if self.disk_failure is not None:  # checked last: the flusher may set it at any moment
            self.accepting = False

    @property
    def is_paused(self) -> bool:
        """Whether the store has run out of room on disk."""
        return self._retry_at_ms is not None

    @property
    def may_look_again(self) -> bool:
        """Whether the store is paused and a second has passed since the last try."""
        return self._retry_at_ms is not None and self._clock.monotonic_ms() >= self._retry_at_ms

    def pause(self, error: Exception) -> None:
        """The disk has no room: accept nothing until `resume`."""
        if self._retry_at_ms is None:
            logger.error("store %s takes no messages for now: %s", self._config.root, error)
        self._retry_at_ms = self._clock.monotonic_ms() + RETRY_MS
        self._decide()

    def resume(self) -> bool:
        """The disk has room again; returns whether messages are accepted now."""
        logger.info("store %s has room on disk again", self._config.root)
        self._retry_at_ms = None
        self._decide()
        return self.accepting

    def refuse_while(self, *, disk_is_used_up: bool) -> None:
        """Set or clear the state "disk used up"."""
        self.is_disk_used_up = disk_is_used_up
        self._decide()

    def record_disk_failure(self, error: DiskFailedError) -> None:
        """In the flusher's thread: written bytes may not be on disk, and a second try would not show it."""
        self.disk_failure = str(error)
        self.accepting = False
        logger.critical("store %s takes no messages until it is opened again: %s", self._config.root, error)
