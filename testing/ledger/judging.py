"""A verdict from the facts and the stored messages.

    lost, unread         each stored message that the group wants and that no answer held: passed by its offset, or not
    duplicated           two deliveries of one record without a retry between
    out_of_order         a first delivery behind one of a later message of the same queue, or of the same sharding key
    offset_moved_back    a commit behind the one before

A retry is a record of its own in a retry topic, so it is neither a duplicate nor out of order. An ordered pop hands out
the same record again: a retry as well, once its invisible time is over or was changed.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from pocketmq.broker.broker import Broker
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.topics import is_retry_topic
from pocketmq.protocol.requests.send import SendMessage, SendMessageV2
from pocketmq.protocol.wire.schema import REQUESTS

from ..requests.logged_request import Kept, LoggedRequest
from ..requests.request_log import RequestLog
from .book import Book
from .facts import Acked, Committed, Delivery, Place, Pulled, Queue, SentBack
from .stored import Stored, message_at, queues, wanted
from .verdict import Finding, Verdict

SENDS_LOOKED_AT: Final = 10_000
"""The newest requests of the log, among which the send of an unread message is looked for."""
_SENDS: Final = frozenset(
    code for code, kind in REQUESTS.items() if issubclass(kind, SendMessage | SendMessageV2)
)


class Judge:
    """Judges one group and topic; used once."""

    def __init__(
        self, book: Book, log: RequestLog, brokers: Sequence[Broker], topic: str, group: str
    ) -> None:
        self._book = book
        self._log = log
        self._brokers = brokers
        self._topic = topic
        self._group = group
        self._facts = [fact for fact in book.facts if fact.group == group]
        self._deliveries = [fact for fact in self._facts if isinstance(fact, Delivery)]
        self._is_broadcast = group in book.subscriptions.broadcasting
        self._sends: dict[object, LoggedRequest] | None = None

    def verdict(self) -> Verdict:
        lost, unread = self._undelivered()
        return Verdict(
            topic=self._topic,
            group=self._group,
            lost=lost,
            duplicated=self._duplicated(),
            out_of_order=self._out_of_order(),
            offset_moved_back=self._moved_back(),
            unread=unread,
            forgotten=self._book.forgotten[self._topic, self._group],
        )

    # -- lost, unread

    def _undelivered(self) -> tuple[list[Finding], list[Finding]]:
        lost: list[Finding] = self._passed_by_members() if self._is_broadcast else []
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
        subscriptions = self._book.subscriptions.by_pair.get((self._topic, self._group), ())
        for broker, name, queue in queues(self._brokers, self._topic):
            wants = wanted(self._topic, subscriptions, is_5=broker.config.is_5)
            passes = self._passes(name)
            judged_from = self._book.judged_from.get((self._group, name), 0)
            for offset in range(max(queue.min_offset, judged_from), queue.max_offset):
                found = message_at(broker, name, queue, offset)
                if found is None or found[1].place in delivered or not wants(found[0], found[1].record):
                    continue
                if found[1].message_id in retried or (name, offset) in not_meant:
                    continue
                if (name.broker, name.queue_id, offset) in passed_by_members:
                    continue
                passed = acks.get((name, offset)) or _passing(passes, offset)
                passed = passed or given_up.get(found[1].message_id)
                finding = self._finding_of(found[1], passed)
                (unread if passed is None else lost).append(finding)
        return lost, unread

    def _undelivered_retries(self) -> dict[str, Kept]:
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
            queue = broker.store.consume_queue(fact.queue.topic, fact.queue.queue_id)
            stored = None if queue is None else message_at(broker, fact.queue, queue, fact.offset)
            if stored is not None:
                found[stored[1].message_id] = fact.request
        return found

    def _passes(self, queue: Queue) -> list[tuple[int, int, Kept]]:
        """Offsets that the group's offset passed: from, to, and the commit. It passes nothing before its first pull."""
        at = self._book.began.get((self._group, queue, None), 0)
        passes = []
        for fact in self._facts:
            if isinstance(fact, Committed) and fact.queue == queue and fact.offset > at:
                passes.append((at, fact.offset, fact.request))
                at = fact.offset
        return passes

    def _passed_by_members(self) -> list[Finding]:
        """What members of a broadcasting group did not get: their pulls passed it, and no answer held it."""
        lost = []
        got = {(fact.place, fact.member) for fact in self._deliveries}
        subscriptions = self._book.subscriptions.by_pair.get((self._topic, self._group), ())
        passed: dict[tuple[Queue, str], Pulled] = {}
        for fact in self._facts:
            if isinstance(fact, Pulled):
                former = passed.get((fact.queue, fact.member))
                if former is None or fact.offset > former.offset:
                    passed[fact.queue, fact.member] = fact
        for broker, name, queue in queues(self._brokers, self._topic):
            wants = wanted(self._topic, subscriptions, is_5=broker.config.is_5)
            judged_from = max(queue.min_offset, self._book.judged_from.get((self._group, name), 0))
            for (of_queue, member), pulled in passed.items():
                begin = self._book.began.get((self._group, name, member), pulled.offset)
                for offset in range(max(begin, judged_from), pulled.offset if of_queue == name else 0):
                    found = message_at(broker, name, queue, offset)
                    if (
                        found is None
                        or (found[1].place, member) in got
                        or not wants(found[0], found[1].record)
                    ):
                        continue
                    lost.append(self._finding_of(found[1], pulled.request, client_id=member))
        return lost

    def _finding_of(self, message: Stored, passed: Kept | None, client_id: str | None = None) -> Finding:
        sent = self._send_of(message)
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

    def _send_of(self, message: Stored) -> LoggedRequest | None:
        if self._sends is None:
            self._sends = {}
            for request in self._log.last(SENDS_LOOKED_AT):
                if request.code in _SENDS and request.response is not None:
                    for key in _keys_of(request):
                        self._sends[key] = request
        found = self._sends.get(message.message_id)
        return found or self._sends.get((message.queue, message.offset))

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
        held = {name: (broker, queue) for broker, name, queue in queues(self._brokers, self._topic)}
        for fact in self._facts:
            if not isinstance(fact, Committed) or fact.queue.topic != self._topic:
                continue
            former = before.get(fact.queue)
            before[fact.queue] = fact
            if former is None or fact.offset >= former.offset:
                continue
            stored = None
            if fact.queue in held:
                broker, queue = held[fact.queue]
                stored = message_at(broker, fact.queue, queue, fact.offset)
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


def _passing(passes: Iterable[tuple[int, int, Kept]], offset: int) -> Kept | None:
    return next((commit for begin, end, commit in passes if begin <= offset < end), None)


def _is_due_again(before: Delivery, fact: Delivery) -> bool:
    """Whether a pop's invisible time was over."""
    again, popped = before.visible_again_ms, fact.popped_ms
    return again is not None and popped is not None and popped >= again


def _is_before(fact: Delivery, other: Delivery) -> bool:
    """Whether it was stored before the other."""
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
