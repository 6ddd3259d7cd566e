"""Queue locks for orderly consumption: one owner for each group and queue, for 60 s at a time.

The owner renews its locks every 20 s, and stops consuming if it could not renew them for 30 s. A lock expires after
60 s, so the next owner never consumes together with the former one. `client_handlers.py` has the requests. Mirrors
`RebalanceLockManager`.
"""

from collections.abc import Callable, Generator, Iterable
from typing import Final

import msgspec
from pocketmq.protocol.message.message_queue import MessageQueue

LOCK_MAX_LIVE_MS: Final = 60_000
MAX_LOCKS: Final = 100_000
"""Of all groups; further queues are locked once others have expired."""


class QueueLock(msgspec.Struct, eq=False):
    """One lock. Any client may take an expired lock."""

    client_id: str
    last_update_ms: int

    def is_expired(self, now_ms: int) -> bool:
        return now_ms - self.last_update_ms > LOCK_MAX_LIVE_MS


class QueueLocks:
    """All locks of a broker, by group and queue. Owned by the event loop; lost at a restart, as in the official
    broker."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[MessageQueue, QueueLock]] = {}
        self._count = 0

    def lock(
        self, group: str, queues: Iterable[MessageQueue], client_id: str, now_ms: int
    ) -> list[MessageQueue]:
        """Take or renew locks; returns those of `queues` that this client holds now."""
        locks = self._groups.setdefault(group, {})
        held = []
        for queue in queues:
            lock = locks.get(queue)
            if lock is None:
                if self._count >= MAX_LOCKS:
                    continue
                self._count += 1
                locks[queue] = QueueLock(client_id, now_ms)
            elif lock.is_expired(now_ms):
                locks[queue] = QueueLock(client_id, now_ms)
            elif lock.client_id == client_id:
                lock.last_update_ms = now_ms
            else:
                continue
            held.append(queue)
        return held

    def unlock(self, group: str, queues: Iterable[MessageQueue], client_id: str) -> None:
        """Release the locks of this client; locks of other clients stay."""
        locks = self._groups.get(group, {})
        for queue in queues:
            lock = locks.get(queue)
            if lock is not None and lock.client_id == client_id:
                self._count -= 1
                del locks[queue]

    def owner(self, group: str, queue: MessageQueue, now_ms: int) -> str | None:
        lock = self._groups.get(group, {}).get(queue)
        return None if lock is None or lock.is_expired(now_ms) else lock.client_id

    def are_all_expired(self, group: str, now_ms: int) -> bool:
        """True if no client of the group consumes orderly; a send to %RETRY% depends on it (5.x)."""
        return all(lock.is_expired(now_ms) for lock in self._groups.get(group, {}).values())

    def next_expiry_ms(self) -> int | None:
        """When the first lock expires unless its client renews it; `None` without locks."""
        times = [lock.last_update_ms for locks in self._groups.values() for lock in locks.values()]
        return min(times) + LOCK_MAX_LIVE_MS + 1 if times else None

    def forget(self, is_kept: Callable[[str, str], bool]) -> None:
        """Delete all locks but those for which `is_kept(group, client id)`."""
        for group, locks in list(self._groups.items()):
            for queue in [queue for queue, lock in locks.items() if not is_kept(group, lock.client_id)]:
                self._count -= 1
                del locks[queue]
            if not locks:
                del self._groups[group]

    def list_held(self, now_ms: int) -> list[tuple[str, MessageQueue, str]]:
        """Every lock that has not expired: group, queue, client id."""
        return [
            (group, queue, lock.client_id)
            for group, locks in self._groups.items()
            for queue, lock in locks.items()
            if not lock.is_expired(now_ms)
        ]

    def expire(self, now_ms: int) -> Generator[None]:
        """Delete expired locks, so that the table does not grow. Yields after each lock."""
        for group, locks in list(self._groups.items()):
            for queue, lock in list(locks.items()):
                yield
                if lock.is_expired(now_ms) and locks.get(queue) is lock:
                    self._count -= 1
                    del locks[queue]
            if not locks and self._groups.get(group) is locks:
                del self._groups[group]
