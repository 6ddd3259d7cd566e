"""A verdict from the facts and the stored messages.

    lost, unread         each stored message that the group wants and that no answer held: passed by its offset, or not
    duplicated           two deliveries of one record without a retry between
    out_of_order         a first delivery behind one of a later message of the same queue, or of the same sharding key
    offset_moved_back    a commit behind the one before

A retry is a record of its own in a retry topic, so it is neither a duplicate nor out of order. An ordered pop hands out
the same record again: a retry as well, once its invisible time is over or was changed.

A judge works in steps (a generator that yields None): beside a server it leaves the loop between two of them.
"""

from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar, cast

from pocketmq.broker.broker import Broker
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.topics import is_retry_topic

from ..requests.logged_request import SENDS, LogEntry, LoggedRequest
from ..requests.request_log import RequestLog
from .book import Book
from .facts import Acked, Committed, Delivery, Fact, Place, Pulled, Queue, SentBack
from .stored import Stored, message_at, queues, wanted
from .verdict import Finding, Verdict

SENDS_LOOKED_AT: Final = 10_000
"""The newest requests of the log, among which the send of an unread message is looked for."""

ResultT = TypeVar("ResultT")
Steps = Generator[None, None, ResultT]


def result_of(steps: Steps[ResultT]) -> ResultT:
    """The result of all steps, one directly after the other."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(ResultT, end.value)


class Sends:
    """The sends in the log, read once for all judges that get it."""

    def __init__(self, log: RequestLog) -> None:
        self._log = log
        self._found: dict[object, LoggedRequest] | None = None

    def read(self) -> Steps[None]:
        """Before the first `find`."""
        if self._found is not None:
            return
        found: dict[object, LoggedRequest] = {}
        for request in islice(self._log.one_by_one(0, newest_first=True), SENDS_LOOKED_AT):
            yield
            if request.code in SENDS and request.response is not None:
                for key in _keys_of(request):
                    found.setdefault(key, request)
        self._found = found

    def find(self, message: Stored) -> LoggedRequest | None:
        known = self._found or {}
        return known.get(message.message_id) or known.get((message.queue, message.offset))


class Judge:
    """Judges one group and topic; used once."""

    def __init__(
        self,
        book: Book,
        facts: Sequence[Fact],
        sends: "Sends",
        brokers: Sequence[Broker],
        topic: str,
        group: str,
    ) -> None:
        """`facts` are those of the group."""
        self._book = book
        self._sends = sends
        self._brokers = brokers
        self._topic = topic
        self._group = group
        self._facts = facts
        self._deliveries = [fact for fact in self._facts if isinstance(fact, Delivery)]
        self._is_broadcast = group in book.subscriptions.broadcasting

    def steps(self) -> Steps[Verdict]:
        lost, unread = yield from self._undelivered()
        duplicated = self._duplicated()
        yield
        out_of_order = self._out_of_order()
        yield
        return Verdict(
            topic=self._topic,
            group=self._group,
            lost=lost,
            duplicated=duplicated,
            out_of_order=out_of_order,
            offset_moved_back=self._moved_back(),
            unread=unread,
            forgotten=self._book.forgotten[self._topic, self._group],
        )

    # -- lost, unread

    def _undelivered(self) -> Steps[tuple[list[Finding], list[Finding]]]:
        lost: list[Finding] = (yield from self._passed_by_members()) if self._is_broadcast else []
        unread: list[Finding] = []
        passed_by_members = {(one.broker, one.queue_id, one.queue_offset) for one in lost}
        delivered = {fact.place for fact in self._deliveries}
        retried = {fact.message_id for fact in self._deliveries if fact.is_retry}
        acks = {
            (fact.queue, fact.offset): fact.request
            for fact in self._facts
            if isinstance(fact, Acked) and not fact.is_returned
        }
        given_up = self._undelivered_retries()
        not_meant = {
            (one.queue, one.offset)
            for one in self._facts
            if isinstance(one, Acked)
            and (one.is_filtered or (one.is_given_up and is_retry_topic(one.queue.topic)))
        }
        commits = self._commits()
        for broker, name, queue in queues(self._brokers, self._topic):
            passes = self._passes(name, commits.get(name, ()))
            for found in self._wanted(broker, name, queue.min_offset, queue.max_offset):
                yield
                if found is None or found.place in delivered or found.message_id in retried:
                    continue
                at = name.broker, name.queue_id, found.offset
                if (name, found.offset) in not_meant or at in passed_by_members:
                    continue
                passed = acks.get((name, found.offset)) or _passing(passes, found.offset)
                passed = passed or given_up.get(found.message_id)
                yield from self._sends.read()
                (unread if passed is None else lost).append(self._finding_of(found, passed))
        return lost, unread

    def _wanted(self, broker: Broker, name: Queue, begin: int, end: int) -> Iterator[Stored | None]:
        """The messages of a part of a queue that are judged and that the group wants; None for each other."""
        subscriptions = self._book.subscriptions.by_pair.get((self._topic, self._group), ())
        wants = wanted(self._topic, subscriptions, is_5=broker.config.is_5)
        for offset in range(max(begin, self._book.judged_from.get((self._group, name), 0)), end):
            found = message_at(broker, name, offset)
            yield found[1] if found is not None and wants(found[0], found[1].record) else None

    def _undelivered_retries(self) -> dict[str, LogEntry]:
        """Retries that were acknowledged and never delivered, by message id: the server made dead letters of them."""
        delivered = {(fact.queue, fact.offset) for fact in self._deliveries}
        held = {broker.config.broker_name: broker for broker in self._brokers}
        found = {}
        for fact in self._facts:
            if not isinstance(fact, Acked) or fact.is_returned or not is_retry_topic(fact.queue.topic):
                continue
            broker = held.get(fact.queue.broker)
            if broker is None or (fact.queue, fact.offset) in delivered:
                continue
            stored = message_at(broker, fact.queue, fact.offset)
            if stored is not None:
                found[stored[1].message_id] = fact.request
        return found

    def _commits(self) -> dict[Queue, list[Committed]]:
        found: dict[Queue, list[Committed]] = {}
        for fact in self._facts:
            if isinstance(fact, Committed):
                found.setdefault(fact.queue, []).append(fact)
        return found

    def _passes(self, queue: Queue, commits: Iterable[Committed]) -> list[tuple[int, int, LogEntry]]:
        """Offsets that the group's offset passed, rising: from, to, and the commit. It passes nothing before its first
        pull."""
        at = self._book.began.get((self._group, queue, None), 0)
        passes = []
        for fact in commits:
            if fact.offset > at:
                passes.append((at, fact.offset, fact.request))
                at = fact.offset
        return passes

    def _passed_by_members(self) -> Steps[list[Finding]]:
        """What members of a broadcasting group did not get: their pulls passed it, and no answer held it."""
        lost = []
        got = {(fact.place, fact.member) for fact in self._deliveries}
        passed: dict[tuple[Queue, str], Pulled] = {}
        for fact in self._facts:
            if isinstance(fact, Pulled):
                former = passed.get((fact.queue, fact.member))
                if former is None or fact.offset > former.offset:
                    passed[fact.queue, fact.member] = fact
        for broker, name, queue in queues(self._brokers, self._topic):
            for (of_queue, member), pulled in passed.items():
                begin = self._book.began.get((self._group, name, member), pulled.offset)
                end = pulled.offset if of_queue == name else 0
                for found in self._wanted(broker, name, max(begin, queue.min_offset), end):
                    yield
                    if found is not None and (found.place, member) not in got:
                        yield from self._sends.read()
                        lost.append(self._finding_of(found, pulled.request, client_id=member))
        return lost

    def _finding_of(self, message: Stored, passed: LogEntry | None, client_id: str | None = None) -> Finding:
        sent = self._sends.find(message)
        proof = [] if sent is None else [sent]
        if passed is not None:
            proof.append(LoggedRequest(passed))
        name = message.queue
        return Finding(
            message.message_id,
            proof,
            name.broker,
            name.topic,
            name.queue_id,
            message.offset,
            client_id=client_id,
        )

    # -- duplicated

    def _duplicated(self) -> list[Finding]:
        found = []
        last: dict[tuple[Place, str | None], tuple[int, Delivery]] = {}
        returned: dict[Place | tuple[Queue, int], int] = {}
        for number, fact in enumerate(self._facts):
            if isinstance(fact, SentBack):
                returned[fact.place] = number
            elif isinstance(fact, Acked) and fact.is_returned:
                returned[fact.queue, fact.offset] = number
            elif isinstance(fact, Delivery) and fact.queue.topic == self._topic:
                key = fact.place, self._member(fact)
                before = last.get(key)
                last[key] = number, fact
                if before is None or _is_due_again(before[1], fact):
                    continue
                retry = max(returned.get(fact.place, -1), returned.get((fact.queue, fact.offset), -1))
                if retry < before[0]:
                    found.append(self._finding(fact, [before[1], fact]))
        return found

    # -- out of order

    def _out_of_order(self) -> list[Finding]:
        found = []
        seen: set[tuple[Place, str | None]] = set()
        furthest: dict[object, Delivery] = {}
        for fact in self._deliveries:
            member = self._member(fact)
            if fact.is_retry or fact.queue.topic != self._topic or (fact.place, member) in seen:
                continue
            seen.add((fact.place, member))
            queue_key = fact.queue, member
            before = furthest.get(queue_key)
            is_late = before is not None and fact.offset < before.offset
            if not is_late:
                furthest[queue_key] = fact
            if fact.sharding_key is not None:
                key = fact.sharding_key, member
                of_key = furthest.get(key)
                if of_key is None or not _is_before(fact, of_key):
                    furthest[key] = fact
                elif not is_late:
                    before, is_late = of_key, True
            if is_late and before is not None:
                found.append(self._finding(fact, [before, fact]))
        return found

    # -- offset moved back

    def _moved_back(self) -> list[Finding]:
        found = []
        before: dict[Queue, Committed] = {}
        held = {name: broker for broker, name, _ in queues(self._brokers, self._topic)}
        for fact in self._facts:
            if not isinstance(fact, Committed) or fact.queue.topic != self._topic:
                continue
            former = before.get(fact.queue)
            before[fact.queue] = fact
            if former is None or fact.offset >= former.offset:
                continue
            stored = None
            if fact.queue in held:
                stored = message_at(held[fact.queue], fact.queue, fact.offset)
            found.append(
                Finding(
                    None if stored is None else stored[1].message_id,
                    [LoggedRequest(former.request), LoggedRequest(fact.request)],
                    *fact.queue,
                    fact.offset,
                )
            )
        return found

    def _member(self, fact: Delivery) -> str | None:
        """Members of a broadcasting group are judged one by one."""
        return fact.member if self._is_broadcast else None

    def _finding(self, fact: Delivery, proof: Iterable[Delivery]) -> Finding:
        return Finding(
            fact.message_id,
            [LoggedRequest(one.request) for one in proof],
            *fact.queue,
            fact.offset,
            sharding_key=fact.sharding_key,
            client_id=self._member(fact),
        )


def _passing(passes: Sequence[tuple[int, int, LogEntry]], offset: int) -> LogEntry | None:
    at = bisect_right(passes, offset, key=lambda one: one[0]) - 1
    return passes[at][2] if at >= 0 and offset < passes[at][1] else None


def _is_due_again(before: Delivery, fact: Delivery) -> bool:
    """Whether a pop's invisible time was over."""
    again, popped = before.visible_again_ms, fact.popped_ms
    return again is not None and popped is not None and popped >= again


def _is_before(fact: Delivery, other: Delivery) -> bool:
    if fact.place.broker == other.place.broker:
        return fact.place.position < other.place.position
    return fact.store_timestamp < other.store_timestamp


def _keys_of(request: LoggedRequest) -> list[object]:
    """The id of the message that a send stored, and where its messages lie."""
    reply, fields = request.reply_fields, request.fields
    keys: list[object] = [decode_properties(fields.get("properties", "")).get(names.UNIQ_KEY)]
    try:
        queue = Queue(request.broker or "", request.topic or "", int(reply["queueId"]))
        first = int(reply["queueOffset"])
    except (KeyError, ValueError):
        return keys
    return keys + [(queue, first + number) for number in range(len(reply.get("msgId", "").split(",")))]
