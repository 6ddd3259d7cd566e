"""The book: all facts of a test, in order.

Watchers add requests and answers as they pass; they are read when somebody looks, or once `UNREAD_BYTES` wait. At most
`FACTS` facts are kept. Then the oldest leave: `forgotten` counts them by topic and group, and the queue is judged from
the offset behind them on (`judged_from`). Where a group began to read is remembered apart from the facts (`began`).
Belongs to the server's loop.
"""

from collections import Counter, deque
from collections.abc import Mapping
from typing import Final

from ..requests.logged_request import LogEntry
from .facts import Acked, Committed, Delivery, Fact, Pulled, Queue, SentBack
from .reading import deliveries, done
from .subscriptions import Subscriptions

FACTS: Final = 100_000
UNREAD_BYTES: Final = 256 * 1024
UNREAD: Final = 512
"""Requests and answers that wait to be read."""
BEGINNINGS: Final = 100_000
"""Queues of groups whose first pull is remembered."""


class Book:
    """Everything that the watchers of one or more servers saw."""

    def __init__(self, most: int = FACTS) -> None:
        self._most = most
        self._unread: list[tuple[LogEntry, bytes | None, Mapping[str, str] | None]] = []
        self._unread_bytes = 0
        self.facts: deque[Fact] = deque()
        self.subscriptions: Final = Subscriptions()
        self.forgotten: Counter[tuple[str, str]] = Counter()
        self.judged_from: dict[tuple[str, Queue], int] = {}
        """By group and queue; also where the group stood when the ledger began."""
        self.began: dict[tuple[str, Queue, str | None], int] = {}
        """The offset of the first pull by group, queue and, for a broadcasting group, member."""
        self._pulled: dict[tuple[str, Queue, str | None], int] = {}
        """The same of the newest pull of the members of broadcasting groups."""
        self._offsets: dict[tuple[str, Queue], int] = {}
        self._sent_back: deque[int] = deque(maxlen=1000)
        """Ids of requests that were read: an answer that a fault holds back passes twice."""

    def clear(self) -> None:
        """Forget everything."""
        self._unread_bytes = 0
        for kept in (self._unread, self.facts, self.subscriptions, self.forgotten):
            kept.clear()
        for known in (self.judged_from, self.began, self._pulled, self._offsets, self._sent_back):
            known.clear()

    def add(
        self, kept: LogEntry, body: bytes | None = None, reply_fields: Mapping[str, str] | None = None
    ) -> None:
        """A request that the broker handles, maybe with what its reply says of it.

        With a body, the answer that its peer got."""
        self._unread.append((kept, body, reply_fields))
        if body is not None:
            self._unread_bytes += len(body)
        if self._unread_bytes > UNREAD_BYTES or len(self._unread) > UNREAD:
            self.read()

    def read(self) -> None:
        """Make facts of what was added."""
        unread, self._unread, self._unread_bytes = self._unread, [], 0
        for kept, body, reply_fields in unread:
            if body is not None:
                found = deliveries(kept, body, reply_fields or {})
            else:
                self.subscriptions.read(kept)
                found = done(kept, reply_fields or {})
            for fact in found:
                self._keep(fact)

    def _keep(self, fact: Fact) -> None:
        if isinstance(fact, Committed):
            key = fact.group, fact.queue
            if self._offsets.get(key) == fact.offset:
                return
            self._offsets[key] = fact.offset
        elif isinstance(fact, Pulled):
            if not self._is_news(fact):
                return
        elif isinstance(fact, SentBack):
            if fact.request.id in self._sent_back:
                return
            self._sent_back.append(fact.request.id)
        self.subscriptions.know(fact.queue.topic, fact.group)
        self.facts.append(fact)
        if len(self.facts) > self._most:
            self._forget(self.facts.popleft())

    def _is_news(self, fact: Pulled) -> bool:
        """Remember where the group began. A broadcasting group commits nothing: the pulls of its members say how far
        they are."""
        is_broadcast = fact.group in self.subscriptions.broadcasting
        key = fact.group, fact.queue, fact.member if is_broadcast else None
        if key not in self.began:
            self.subscriptions.know(fact.queue.topic, fact.group)
            if len(self.began) >= BEGINNINGS:
                del self.began[next(iter(self.began))]
            self.began[key] = fact.offset
        if not is_broadcast or self._pulled.get(key) == fact.offset:
            return False
        if len(self._pulled) >= BEGINNINGS:
            self._pulled.clear()
        self._pulled[key] = fact.offset
        return True

    def _forget(self, fact: Fact) -> None:
        self.forgotten[fact.queue.topic, fact.group] += 1
        if isinstance(fact, Delivery | Acked):
            key = fact.group, fact.queue
            self.judged_from[key] = max(self.judged_from.get(key, 0), fact.offset + 1)
