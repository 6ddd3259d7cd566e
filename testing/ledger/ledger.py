"""The ledger as a test uses it: `rocketmq.ledger`.

    rocketmq.ledger.assert_clean(orders, billing, allow=("duplicated",))
    verdict = rocketmq.ledger.verdict(orders, billing)      lost, duplicated, out_of_order, offset_moved_back, unread
    rocketmq.ledger.message(sent.message_id).deliveries

Methods may be called from any thread. A verdict is about everything so far: wait first until the consumers are done.
"""

import difflib
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Final, TypeVar

from pocketmq.broker.broker import Broker
from pocketmq.broker.network.watch import Watcher
from pocketmq.broker.node import Node
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.offset_id import encode_message_id
from pocketmq.protocol.message.topics import is_dlq_topic, is_internal_group, is_retry_topic, is_system_topic

from ..errors import WrongValueError
from ..requests.request_log import LogWatcher, RequestLog
from .book import Book, HandledRequests, SentReplies
from .facts import Acked, Committed, Delivery, Fact, Place, Queue, SentBack
from .judging import Judge, Sends, Steps, result_of
from .reading import message_id_of
from .stored import records_with
from .verdict import MessageHistory, Verdict, other_kinds

ResultT = TypeVar("ResultT")
_ALLOWED: Final = 1000
"""Names that an error lists at most, and among which it looks for one that may be meant."""


class Ledger:
    """What became of every message of one or more nodes, since it began or since `clear`.

    At most 100,000 facts (deliveries, commits, acks); then the oldest leave, and `Verdict.forgotten` counts them.
    """

    def __init__(self, log: RequestLog, call: Callable[[Callable[[], None]], None]) -> None:
        self._log = log
        self._call = call
        self._book: Final = Book()
        self._nodes: list[Node] = []
        self._noted: set[str] = set()
        """Names of brokers that were attached: one that starts again was watched before."""

    # -- looking

    def verdict(self, topic: str, group: str) -> Verdict:
        """How the group fared with the topic. `WrongValueError` (a ValueError) for a topic or group that is unknown."""
        return self._on_loop(lambda: result_of(next(self.each_judged(topic, group))))

    def assert_clean(self, topic: str, group: str, *, allow: Iterable[str] = ()) -> None:
        """Raises AssertionError, with the findings and their requests, unless there are none but of `allow`."""
        other_kinds(allow)
        verdict = self.verdict(topic, group)
        if not verdict.is_clean(allow):
            raise AssertionError(f"not clean: {verdict.report(allow)}")

    def verdicts(self) -> list[Verdict]:
        """Of every topic and group that read, or subscribed to, anything; not of the broker's own."""
        return self._on_loop(lambda: [result_of(steps) for steps in self.each_judged()])

    def assert_all_clean(self, *, allow: Iterable[str] = ()) -> None:
        """As `assert_clean`, for every topic and group."""
        bad = [verdict for verdict in self.verdicts() if not verdict.is_clean(allow)]
        if bad:
            raise AssertionError("not clean: " + "\n".join(verdict.report(allow) for verdict in bad))

    def message(self, message_id: str) -> MessageHistory:
        """What became of one message, by the id of its producer or of the broker. `WrongValueError` if none has it."""
        return self._on_loop(lambda: result_of(self.history_steps(message_id)))

    def deliveries(self) -> list[Delivery]:
        """Every message that a client got, in the order of the answers; retries and the broker's own topics too."""
        return self._on_loop(lambda: [fact for fact in self._book.facts if isinstance(fact, Delivery)])

    # -- watching

    def attach(self, node: Node) -> None:
        """A node whose servers are watched. Call it on the loop."""
        self._nodes.append(node)
        if node.broker.config.broker_name not in self._noted:
            self._note_offsets(node.broker)

    def detach(self, node: Node) -> None:
        self._nodes = [one for one in self._nodes if one is not node]

    def watchers(self, log: LogWatcher) -> tuple[Watcher, Watcher]:
        """The two of a server: the first belongs between the log and the faults, the second behind the faults."""
        return SentReplies(self._book, log), HandledRequests(self._book, log)

    def clear(self) -> None:
        """Forget everything so far. Messages that a group has consumed before are not judged."""

        def forget() -> None:
            self._book.clear()
            self._noted.clear()
            for node in self._nodes:
                self._note_offsets(node.broker)

        self._on_loop(forget)

    def _note_offsets(self, broker: Broker) -> None:
        self._noted.add(broker.config.broker_name)
        for topic in broker.topics.topics:
            for group in broker.offsets.groups_of(topic):
                for queue_id, offset in (broker.offsets.offsets(topic, group) or {}).items():
                    queue = Queue(broker.config.broker_name, topic, queue_id)
                    self._book.judged_from[group, queue] = offset

    # -- on the loop, for the HTTP port, which leaves the loop between two steps

    def each_judged(
        self, topic: str | None = None, group: str | None = None, after: tuple[str, str] = ("", "")
    ) -> Iterator[Steps[Verdict]]:
        """A verdict for each topic and group that fit, sorted, behind these; for a topic and a group, as `verdict`."""
        self._book.read()
        sends = Sends(self._log)
        if topic and group:
            yield self._judged(topic, group, self._facts_of({group})[group], sends)
            return
        pairs = [
            (one, other)
            for one, other in self._pairs()
            if topic in (None, "", one) and group in (None, "", other) and (one, other) > after
        ]
        facts = self._facts_of({other for _, other in pairs})
        for one, other in pairs:
            yield self._judged(one, other, facts[other], sends)

    # -- on the loop

    def _facts_of(self, groups: Set[str]) -> dict[str, list[Fact]]:
        found: dict[str, list[Fact]] = {group: [] for group in groups}
        for fact in self._book.facts:
            if fact.group in found:
                found[fact.group].append(fact)
        return found

    def _on_loop(self, function: Callable[[], ResultT]) -> ResultT:
        found: list[ResultT] = []

        def called() -> None:
            self._book.read()
            found.append(function())

        self._call(called)
        return found[0]

    def _judged(self, topic: str, group: str, facts: Sequence[Fact], sends: Sends) -> Steps[Verdict]:
        if not any(topic in node.broker.topics.topics for node in self._nodes):
            topics = {name for node in self._nodes for name in node.broker.topics.topics}
            allowed = heapq.nsmallest(_ALLOWED, topics)
            near = _near(topic, [name for name in allowed if not is_system_topic(name)])
            raise WrongValueError(f"topic {topic} does not exist{near}", allowed)
        known = self._book.subscriptions.by_pair
        if (topic, group) not in known:
            groups = heapq.nsmallest(_ALLOWED, {one for name, one in known if name == topic})
            named = f"; those that did: {', '.join(groups)}" if groups else ", and no other group did"
            raise WrongValueError(f"group {group} never read topic {topic}{named}", groups)
        return (yield from Judge(self._book, facts, sends, self._masters(), topic, group).steps())

    def _masters(self) -> list[Broker]:
        """One broker of each name: slaves hold copies."""
        found: dict[str, Broker] = {}
        for node in self._nodes:
            name = node.broker.config.broker_name
            if name not in found or node.broker.config.broker_id == 0:
                found[name] = node.broker
        return list(found.values())

    def _pairs(self) -> list[tuple[str, str]]:
        topics = {name for broker in self._masters() for name in broker.topics.topics}
        return sorted(
            (topic, group)
            for topic, group in self._book.subscriptions.by_pair
            if topic in topics and not is_system_topic(topic) and not is_internal_group(group)
        )

    def history_steps(self, message_id: str) -> Steps[MessageHistory]:
        """As `message`."""
        self._book.read()
        deliveries = [
            fact for fact in self._book.facts if isinstance(fact, Delivery) and fact.message_id == message_id
        ]
        places = {fact.place: (fact.queue, fact.offset) for fact in deliveries}
        topic, dead = "", None
        for found in records_with(self._masters(), message_id):
            yield
            if found is None:
                continue
            queue, place, record, properties = found
            if message_id not in (
                message_id_of(record, properties),
                encode_message_id(record.store_host, record.position),
            ):
                continue
            if is_dlq_topic(queue.topic):
                dead = record.reconsume_times
            else:
                places[place] = queue, record.queue_offset
            topic = topic or _origin(queue.topic, properties)
        if not places and dead is None:
            raise WrongValueError(f"no message has the id {message_id}")
        sent_back = [fact for fact in self._book.facts if isinstance(fact, SentBack) and fact.place in places]
        return MessageHistory(
            message_id=message_id,
            topic=topic or deliveries[0].queue.topic,
            deliveries=[(fact.group, fact.client_id) for fact in deliveries],
            sent_back=len(sent_back),
            acknowledged=self._is_acknowledged(places),
            dead_lettered=None if dead is None else _reason(dead, sent_back),
        )

    def _is_acknowledged(self, places: Mapping[Place, tuple[Queue, int]]) -> bool:
        wanted = set(places.values())
        for fact in self._book.facts:
            if isinstance(fact, Acked) and not fact.is_returned and (fact.queue, fact.offset) in wanted:
                return True
            if isinstance(fact, Committed) and any(
                queue == fact.queue and offset < fact.offset for queue, offset in wanted
            ):
                return True
        return False


def _near(name: str, known: Iterable[str]) -> str:
    """The names that somebody may have meant: misspelt, or without the prefix of the test."""
    ends = [one for one in sorted(known) if one.endswith(f"-{name}")]
    found = ends or difflib.get_close_matches(name, sorted(known), 3, 0.6)
    return f"; did you mean {', '.join(found)}?" if found else ""


def _origin(topic: str, properties: Mapping[str, str]) -> str:
    """The topic that a stored message was sent to."""
    if is_retry_topic(topic) or is_dlq_topic(topic):
        return properties.get(names.RETRY_TOPIC, topic)
    return properties.get(names.REAL_TOPIC, topic)


def _reason(reconsume_times: int, sent_back: list[SentBack]) -> str:
    if sent_back and sent_back[-1].delay_level < 0:
        return f"sent back with delay level {sent_back[-1].delay_level}"
    return f"its retries are used up: consumed again {reconsume_times} times"
