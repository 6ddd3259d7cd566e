"""Whether the store takes messages at this moment, and why not.

    closed, or a slave        nothing but the master's bytes
    no room on disk           a queue, the index or the log could not grow: looked at again once a second
    disk used up              fuller than the warning level of `retention.py`, which also says when that is over
    the disk failed           it refused to force what was written: final, only opening the store again shows
                              what is left

What is in the log stays and stays readable in every case. Not here: what a full disk means for dispatch
(`message_store.py`). Owner: the event-loop thread, except `disk_failed`, which the flusher calls.
"""

import logging

from .clock import Clock
from .config import StoreConfig
from .errors import DiskFailedError

logger = logging.getLogger(__name__)

RETRY_MS = 1000
"""How often a store without room on disk tries again: each try may cost the disk a commit."""


class Admission:
    """`accepting` is the answer, kept ready because every message asks."""

    __slots__ = (
        "_clock",
        "_config",
        "_is_open",
        "_retry_at_ms",
        "accepting",
        "disk_failure",
        "is_disk_used_up",
    )

    def __init__(self, config: StoreConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._is_open = False
        self._retry_at_ms: int | None = None
        self.accepting = False
        self.is_disk_used_up = False
        self.disk_failure: str | None = None

    def open(self) -> None:
        """The store is open; whatever kept it from taking messages before is forgotten."""
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
        if self.disk_failure is not None:  # asked last: the flusher may set it at any moment
            self.accepting = False

    @property
    def is_paused(self) -> bool:
        """Whether only room on disk is missing."""
        return self._retry_at_ms is not None

    @property
    def may_look_again(self) -> bool:
        """Whether it is time to try again."""
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
        """Take no messages while the disk is fuller than its owner wants it."""
        self.is_disk_used_up = disk_is_used_up
        self._decide()

    def disk_failed(self, error: DiskFailedError) -> None:
        """In the flusher's thread: what is in memory may not be on disk, however often that is tried again."""
        self.disk_failure = str(error)
        self.accepting = False
        logger.critical("store %s takes no messages until it is opened again: %s", self._config.root, error)
