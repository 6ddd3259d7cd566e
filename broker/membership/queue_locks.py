"""Which client may consume which queue in order: one owner for each group and queue, for 60 s at a time.

The owner renews its locks every 20 s and stops consuming when it could not for 30 s; so the next owner, who
gets an expired lock after 60 s, never meets the former one. Mirrors `RebalanceLockManager`. The requests are
in `client_handlers.py`.
"""

from collections.abc import Iterable
from typing import Final

from pocketmq.protocol.message.message_queue import MessageQueue

LOCK_MAX_LIVE_MS: Final = 60_000


class QueueLock:
    """One lock. Expired means free for anyone."""

    __slots__ = ("client_id", "last_update_ms")

    def __init__(self, client_id: str, now_ms: int) -> None:
        self.client_id = client_id
        self.last_update_ms = now_ms

    def is_expired(self, now_ms: int) -> bool:
        return now_ms - self.last_update_ms > LOCK_MAX_LIVE_MS


class QueueLocks:
    """All locks of a broker, by group and queue. Owned by the event loop; lost at a restart, as in the official
    broker."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[MessageQueue, QueueLock]] = {}

    def lock(
        self, group: str, queues: Iterable[MessageQueue], client_id: str, now_ms: int
    ) -> list[MessageQueue]:
        """Take or renew locks; the queues this client holds now, of those it asked for."""
        locks = self._groups.setdefault(group, {})
        held = []
        for queue in queues:
            lock = locks.get(queue)
            if lock is None or lock.is_expired(now_ms):
                locks[queue] = QueueLock(client_id, now_ms)
            elif lock.client_id == client_id:
                lock.last_update_ms = now_ms
            else:
                continue
            held.append(queue)
        return held

    def unlock(self, group: str, queues: Iterable[MessageQueue], client_id: str) -> None:
        """Give up locks; those of other clients stay."""
        locks = self._groups.get(group, {})
        for queue in queues:
            lock = locks.get(queue)
            if lock is not None and lock.client_id == client_id:
                del locks[queue]

    def owner(self, group: str, queue: MessageQueue, now_ms: int) -> str | None:
        """The client id that holds a queue."""
        lock = self._groups.get(group, {}).get(queue)
        return None if lock is None or lock.is_expired(now_ms) else lock.client_id

    def are_all_expired(self, group: str, now_ms: int) -> bool:
        """True if no client of the group consumes in order; decides where a send to %RETRY% ends (5.x)."""
        return all(lock.is_expired(now_ms) for lock in self._groups.get(group, {}).values())

    def expire(self, now_ms: int) -> None:
        """Forget what is expired, so that the table follows its living users."""
        for group, locks in list(self._groups.items()):
            for queue in [queue for queue, lock in locks.items() if lock.is_expired(now_ms)]:
                del locks[queue]
            if not locks:
                del self._groups[group]
