"""The book: all facts of a test, in order.

Watchers add requests and answers as they pass; they are read when somebody looks, or once `UNREAD_BYTES` wait. At most
`FACTS` facts are kept. Then the oldest leave: `forgotten` counts them by topic and group, and the queue is judged from
the offset behind them on (`judged_from`). Where a group began to read is remembered apart from the facts (`began`).
Two watchers of each server fill it, with the faults between them:

    peer  |  log  |  SentReplies  |  faults  |  HandledRequests  |  handlers

`SentReplies` sees the replies that are sent: one that a fault swallowed is no delivery. `HandledRequests` sees what
reached the broker: a commit that a fault refused is none. Both let sends pass undecoded; stored messages are read in
the store. Belongs to the server's loop.
"""

from collections import Counter, deque
from typing import Final, cast

from pocketmq.broker.network.watch import ReplyBody, Watched, Watcher, whole_body
from pocketmq.protocol.bodies.client import TAG, HeartbeatData, MessageModel
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.requests.membership import HeartBeat
from pocketmq.protocol.requests.offset import UpdateConsumerOffset
from pocketmq.protocol.requests.pop import AckMessage, BatchAckMessage, ChangeMessageInvisibleTime
from pocketmq.protocol.requests.send import ConsumerSendMsgBack
from pocketmq.protocol.wire.command import ONEWAY_FLAG, Command

from ..requests.logged_request import LogEntry
from ..requests.request_log import LogWatcher
from .facts import ACK, GIVE_UP, HIDE, RECEIVE, Acked, Committed, Delivery, Fact, Pulled, Queue, SentBack
from .reading import POPS, PULLS, READS, deliveries, done

FACTS: Final = 100_000
UNREAD_BYTES: Final = 256 * 1024
UNREAD: Final = 512
"""Requests and answers that wait to be read."""
BEGINNINGS: Final = 100_000
"""Queues of groups whose first pull is remembered."""


class Book:
    """Everything that the watchers of one or more servers saw."""

    def __init__(self) -> None:
        self._most = FACTS
        self._unread: list[tuple[LogEntry, Command | None, bytes, bool]] = []
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
        self, kept: LogEntry, reply: Command | None = None, body: bytes = b"", *, is_sent: bool = False
    ) -> None:
        """A request that the broker handles or, with a reply, has handled. With `is_sent`, the reply that its peer
        got."""
        self._unread.append((kept, reply, body, is_sent))
        self._unread_bytes += len(body)
        if self._unread_bytes > UNREAD_BYTES or len(self._unread) > UNREAD:
            self.read()

    def read(self) -> None:
        """Make facts of what was added."""
        unread, self._unread, self._unread_bytes = self._unread, [], 0
        for kept, reply, body, is_sent in unread:
            if is_sent and reply is not None:
                found = deliveries(kept, body, reply.fields or {})
            else:
                self.subscriptions.read(kept)
                found = done(kept, reply, body)
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


PAIRS: Final = 10_000
"""Pairs of a topic and a group that are remembered."""
_OWN_SUBSCRIPTION: Final = 4
"""The bit of a pull's sysFlag that says it has a subscription of its own."""
MAX_DIGITS: Final = 11
"""Of a flag; Python refuses to read thousands, and this is asked before the broker refuses the request."""

Subscription = tuple[str, str]
"""Type and expression."""


class Subscriptions:
    """Those of all requests that were read."""

    def __init__(self) -> None:
        self.by_pair: dict[tuple[str, str], set[Subscription]] = {}
        """By topic and group; an empty set wants all."""
        self.broadcasting: set[str] = set()

    def clear(self) -> None:
        self.by_pair.clear()
        self.broadcasting.clear()

    def know(self, topic: str, group: str) -> set[Subscription] | None:
        """What is known of a pair, which is remembered from now on; None without a name or a place for it."""
        known = self.by_pair.get((topic, group))
        if known is None and topic and group and len(self.by_pair) < PAIRS:
            known = self.by_pair[topic, group] = set()
        return known

    def read(self, kept: LogEntry) -> None:
        """A request that reached the broker."""
        command = cast(Command, kept.request)
        fields = command.fields or {}
        topic, group = fields.get("topic", ""), fields.get("consumerGroup", "")
        expression = None
        sys_flag = fields.get("sysFlag", "")
        if command.code == HeartBeat.code:
            self._read_heartbeat(command)
            return
        if command.code == RECEIVE:
            from .rpc_reading import subscribed

            topic, group, expression = subscribed(kept)
        elif command.code in PULLS and sys_flag.isdecimal() and len(sys_flag) <= MAX_DIGITS:
            if int(sys_flag) & _OWN_SUBSCRIPTION:
                expression = fields.get("expressionType") or TAG, fields.get("subscription", "")
        elif command.code in POPS and fields.get("exp"):
            expression = fields.get("expType") or TAG, fields["exp"]
        elif command.code not in POPS:
            return
        known = self.know(topic, group)
        if known is not None and expression is not None and len(known) < PAIRS:
            known.add(expression)

    def _read_heartbeat(self, command: Command) -> None:
        try:
            heartbeat = HeartbeatData.decode(bytes(command.body or b""))
        except ProtocolError:  # the broker refused it
            return
        for consumer in heartbeat.consumer_data_set:
            group = consumer.group_name or ""
            if consumer.message_model == MessageModel.BROADCASTING and len(self.broadcasting) < PAIRS:
                self.broadcasting.add(group)
            for data in consumer.subscription_data_set:
                known = self.know(data.topic or "", group)
                if known is not None and len(known) < PAIRS:
                    known.add((data.expression_type or TAG, data.sub_string or ""))


_AT_ONCE: Final = READS | {HeartBeat.code}
"""What counts when it arrives: the answer to a read may be held for a long time."""
_WHEN_DONE: Final = frozenset(
    kind.code
    for kind in (
        UpdateConsumerOffset,
        AckMessage,
        BatchAckMessage,
        ChangeMessageInvisibleTime,
        ConsumerSendMsgBack,
    )
)
_CALLS: Final = frozenset((RECEIVE, ACK, HIDE, GIVE_UP))
"""Of gRPC consumers: their replies say what was done."""


class _BookWatcher(Watcher):
    """One of the two of a server."""

    sees_raw = True

    def __init__(self, book: Book, log: LogWatcher) -> None:
        self._book = book
        self._log = log

    def _add(self, command: Command, reply: Command | None = None, body: bytes = b"") -> None:
        kept = self._log.entry_of(command)
        if kept is not None:
            self._book.add(kept, reply, body)


class SentReplies(_BookWatcher):
    """Nearer to the peer than the faults: notes the answers to pulls and pops."""

    def __init__(self, book: Book, log: LogWatcher) -> None:
        super().__init__(book, log)
        self._answered: tuple[Command, LogEntry] | None = None
        """The newest answer: a fault may send it twice."""

    def answering(self, connection: Watched, command: Command, reply: Command, body: ReplyBody) -> bool:
        if command.code in READS and reply.code == 0 and body is not None:
            kept = self._log.entry_of(command)
            if kept is None and self._answered is not None and self._answered[0] is command:
                kept = self._answered[1]
            if kept is not None:
                self._answered = command, kept
                self._book.add(kept, reply, whole_body(body), is_sent=True)
        return False


class HandledRequests(_BookWatcher):
    """Behind the faults: notes what the broker is asked to read, and what it has done."""

    def received(self, connection: Watched, command: Command) -> bool:
        code = command.code
        if code in _AT_ONCE or (code in _WHEN_DONE and command.flag & ONEWAY_FLAG):
            self._add(command)
        return False

    def answering(self, connection: Watched, command: Command, reply: Command, body: ReplyBody) -> bool:
        code = command.code
        if code in _CALLS:
            self._add(command, reply, body if code == ACK and isinstance(body, bytes) else b"")
        elif code in _WHEN_DONE and reply.code == 0:
            self._add(command, reply)
        return False
