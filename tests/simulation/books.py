"""What was sent, stored and consumed, as the clients saw it, and what must be true of it.

While the world runs: an acknowledged message is at enough slaves, no offset is committed ahead of what was consumed,
no ordered message is early. At the end: what was acknowledged is stored, queues have no gap, everything stored was
consumed.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from pocketmq.client import MessageExt, SendResult, SendStatus
from pocketmq.protocol.message.offset_id import decode_message_id

from simulation.dead_letters import DEAD_LETTERS, MOST_PER_FAULT, RETRIES, DeadLetters, is_refused
from simulation.dead_letters import GROUP as REFUSING
from simulation.plan import Plan, broker_name_of
from simulation.recalls import Recalls
from simulation.receipts import Place, Receipts

FORCED_WITHIN_SECONDS = 12.0
"""ASYNC_FLUSH forces the whole log every ten seconds."""

MILLISECOND: Final = 0.001


class InvariantError(AssertionError):
    """Something that must never be true is true."""


class Missing(NamedTuple):
    """What a group, or any, has not got yet."""

    group: str
    key: str
    text: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


class Sent:
    """One message that its producer was told is stored."""

    def __init__(self, key: str, at: float, status: SendStatus, place: Place, offset: int) -> None:
        self.key, self.at, self.status = key, at, status
        self.place, self.offset = place, offset
        self.may_be_lost = False


class Books:
    """`now` is the loop's time."""

    def __init__(self, plan: Plan, now: Callable[[], float], trace: Callable[[str], None]) -> None:
        self.plan = plan
        self._now, self.trace = now, trace
        self.violations: list[str] = []
        self.receipts = Receipts(now, self.violated)
        self.recalls = Recalls(now, self.violated)
        explained = len(plan.consumers) + MOST_PER_FAULT * len(plan.events)
        self.dead_letters = DeadLetters(explained, self.violated)
        self.sent: dict[str, Sent] = {}
        self.promises: dict[str, Sent] = {}
        self.rolled_back: set[str] = set()
        self.tried: dict[str, float] = {}
        """Keys, and when they were made."""
        self._power_lost_at: defaultdict[str, float] = defaultdict(lambda: -1.0)
        self._due: dict[str, float] = {}
        self.hurried_seconds = 0.0
        """By how much clocks were set forward."""
        self.flushed: Callable[[str], int] = lambda _: 1 << 62
        """Up to where a broker says that its log is on disk."""
        self.position_of: Callable[[Place, int, str], int | None] = lambda *_: None
        """Where in the log a message is, by its place, its offset and its key; None while the broker is down."""
        self.slave_end = 0
        self.pops_expire = False
        """Whether clocks have differed by so much that consumers took popped messages for expired, and gave them up."""
        self.has_diverged = False
        """Whether the master has lost records that its slave has."""
        self.counts: Counter[str] = Counter()
        self.handled: defaultdict[tuple[str, Place], set[int]] = defaultdict(set)
        """Offsets that a group's listener has returned for, by queue."""
        self.consumed: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """Keys by group."""
        self.regressed: dict[Place, tuple[int, int]] = {}
        """Where a power loss took messages away that consumers may have seen: offsets from and to."""
        self._checked: dict[tuple[str, Place], int] = {}
        self._sent_back: dict[tuple[str, str], float] = {}
        """Group and key of messages that listeners failed on, and when."""
        self._retry_lost: set[tuple[str, str]] = set()
        """Those whose copy for the retry a power loss may have taken."""
        self._last_in_group: dict[tuple[str, str], int] = {}
        """By message group and broker, the offset of the last message that was stored."""
        self.recall_position_of: Callable[[str, str], int | None] = lambda *_: 0
        """Where in the log of a broker the recall of a message is, by the message's id; None if it is not visible."""

    def violated(self, what: str) -> None:
        """Not raised: the product would catch it."""
        self.violations.append(what)

    # -- while it runs

    def new_key(self, sender: str) -> str:
        key = f"{sender}-{len(self.tried)}"
        self.tried[key] = self._now()
        return key

    def acknowledged(self, key: str, result: SendResult, number: int = 0) -> None:
        """A message, or one of a batch, is at the offset of its result."""
        self._check_durable(result.status, result.queue.broker_name, position_in(result))
        self._note_sent(key, result.status, place_in(result), result.queue_offset + number)

    def stored(self, key: str, status: SendStatus, place: Place, offset: int) -> None:
        """A message is at this offset of one of the topic's queues; its producer does not hear which (queue -1)."""
        self._check_durable(status, place[0], self.position_of(place, offset, key))
        if status is SendStatus.SEND_OK:  # no other answer names the offset
            self._note_sent(key, status, place, offset)

    def stored_in_order(self, key: str, message_group: str, broker_name: str, offset: int) -> None:
        """A producer that sends the messages of this group one after another was told so."""
        if self.tried[key] <= self._power_lost_at[broker_name]:
            return
        named = message_group, broker_name
        last = self._last_in_group.get(named, -1)
        if offset <= last:
            self.violated(f"a message of {message_group} is at {offset}, and the one before it at {last}")
        self._last_in_group[named] = offset

    def _note_sent(self, key: str, status: SendStatus, place: Place, offset: int) -> None:
        self.sent[key] = self._kept(Sent(key, self._now(), status, place, offset))
        self.trace(f"{key} is {status.name} at {offset} of {place[2]}")

    def promised(self, key: str, result: SendResult) -> None:
        """A message that is to be consumed later: delayed, or in a transaction that commits."""
        self._check_durable(result.status, result.queue.broker_name, position_in(result))
        self._note_promise(key, result.status, place_in(result))

    def promised_at(self, key: str, status: SendStatus, place: Place, offset: int | None) -> None:
        """The same, where the answer names the offset in a queue, if any."""
        position = None if offset is None else self.position_of(place, offset, key)
        self._check_durable(status, place[0], position)
        self._note_promise(key, status, place)

    def _note_promise(self, key: str, status: SendStatus, place: Place) -> None:
        self.promises[key] = self._kept(Sent(key, self._now(), status, place, -1))
        self.trace(f"{key} is promised")

    def _kept(self, sent: Sent) -> Sent:
        """The answer may have been under way when the power was lost."""
        is_promised = self.plan.flush == "SYNC_FLUSH" and sent.status is SendStatus.SEND_OK
        sent.may_be_lost = not is_promised and self.tried[sent.key] <= self._power_lost_at[sent.place[0]]
        return sent

    def _check_durable(self, status: SendStatus, broker_name: str, position: int | None) -> None:
        self.counts[status.name] += 1
        if status is not SendStatus.SEND_OK or position is None:
            return
        if self.plan.role == "SYNC_MASTER" and broker_name == "b0" and position >= self.slave_end:
            self.violated(
                f"the message at {position} is acknowledged, the slave's log ended at {self.slave_end}"
            )
        if self.plan.flush == "SYNC_FLUSH" and position >= self.flushed(broker_name):
            self.violated(f"the message at {position} is acknowledged, and not on disk")

    def recalled(self, key: str, broker_name: str, message_id: str) -> None:
        """A broker has confirmed a recall; what 5.x shows of SYNC_FLUSH is on disk."""
        self.counts["recalls"] += 1
        self.trace(f"{key} is recalled")
        if self.recall_position_of(broker_name, message_id) is None:
            self.violated(f"the recall of {key} is confirmed, and not on disk")
        self.recalls.confirmed(key, broker_name, self._due[key] - self.hurried_seconds)

    def delayed(self, key: str, seconds: float) -> None:
        """A message is about to be sent that must not be consumed before."""
        self._due[key] = self._now() + seconds - MILLISECOND  # brokers count whole ones

    def answered(self, question: str, answer: str) -> None:
        """A request has got a reply."""
        self.counts["answers"] += 1
        if answer != question:
            self.violated(f"{question} got the answer to {answer}")

    def copied(self, end: int) -> None:
        """The slave's log has reached this position."""
        self.slave_end = max(self.slave_end, end)

    def listened(self, group: str, key: str) -> None:
        """A listener has returned without failing."""
        self.consumed[group][key] += 1
        if key not in self.tried:
            self.violated(f"{group} got {key}, which nobody has sent")
        if key in self.rolled_back:
            self.violated(f"{group} got {key}, whose transaction was rolled back")
        if self._now() < self._due.get(key, 0) - self.hurried_seconds:
            self.violated(f"{group} got {key} before it was due at {self._due[key]:.3f} s")
        self.recalls.consumed(group, key)

    def failed(self, group: str, message: MessageExt) -> None:
        """A listener is about to fail: its client has the broker store the message again."""
        self._sent_back[group, key_in(message.body)] = self._now()

    def dead_letter_read(self, key: str) -> None:
        """A message is read from the dead letters: its group is done with it."""
        self.counts["dead letters"] += 1
        self.consumed[REFUSING][key] += 1
        if not is_refused(key):
            self.violated(f"{key} is a dead letter, and {REFUSING} refuses no such message")

    def popped(self, group: str, key: str) -> None:
        """A gRPC client has got a message: the broker stores it again at any time, unless it is acknowledged."""
        self._sent_back[group, key] = float("inf")

    def is_in_turn(self, group: str, place: Place, offset: int) -> None:
        """An ordered consumer gets a message: it must have got, and returned for, all before it."""
        lost_from, lost_to = self.regressed.get(place, (0, 0))
        handled = self.handled[group, place]
        early = [n for n in range(offset) if n not in handled and not lost_from <= n < lost_to]
        if early:
            self.violated(f"{group} got {offset} of {place} before {early[:3]}")

    def returned(self, group: str, message: MessageExt) -> None:
        """A listener has returned, or failed."""
        self.shown(message.broker_name, message.commit_log_offset)
        if not message.record.topic.startswith("%"):
            place = message.broker_name, message.record.topic, message.queue_id
            self.handled[group, place].add(message.queue_offset)
        self.trace(f"{group} consumed {message.queue_offset} of {message.record.topic} {message.queue_id}")

    def shown(self, broker_name: str, position: int) -> None:
        """A consumer has seen a message. 4.9 shows messages at once; a slave shows what its own disk has."""
        if self.plan.flush == "SYNC_FLUSH" and self.plan.emulate == "5":
            holders = [name for name in self.plan.brokers if broker_name_of(name) == broker_name]
            if position >= max(self.flushed(name) for name in holders):
                self.violated(f"the message at {position} is consumed, and not on disk")

    def committed(self, broker_name: str, topic: str, group: str, queue_id: int, offset: int) -> None:
        """A broker has stored an offset of a group."""
        self.trace(f"{group} commits {offset} of {topic} {queue_id}")
        place = broker_name, topic, queue_id
        key = group, place
        if (
            topic.startswith("%") or group == "g-pop" or key not in self.handled
        ):  # pops are recorded elsewhere
            return
        handled = self.handled[key]
        lost_from, lost_to = self.regressed.get(place, (0, 0))
        for number in range(self._checked.get(key, 0), offset):
            if number not in handled and not lost_from <= number < lost_to:
                self.violated(f"{group} has committed {offset} of {place}, and has not consumed {number}")
        self._checked[key] = max(self._checked.get(key, 0), offset)

    def died(self, broker_name: str, *, was_unsafe: bool) -> None:
        """A broker has ended without saving its tables; `was_unsafe`: none since the disk refused or delayed."""
        self.receipts.died(broker_name, 0.0 if was_unsafe else self._now() - FORCED_WITHIN_SECONDS)

    def power_lost(self, broker_name: str, *, was_unsafe: bool) -> None:
        """ASYNC_FLUSH may lose what is younger than the last pass over the whole log; `was_unsafe`: all of it that
        the disk had refused or delayed."""
        self._power_lost_at[broker_name] = self._now()
        since = self._now() - FORCED_WITHIN_SECONDS
        if was_unsafe or self.plan.flush == "ASYNC_FLUSH":
            self.recalls.power_lost(broker_name, 0.0 if was_unsafe else since)
        self._last_in_group = {
            named: last for named, last in self._last_in_group.items() if named[1] != broker_name
        }
        for sent in (*self.sent.values(), *self.promises.values()):
            if sent.place[0] != broker_name:
                continue
            if self.plan.flush == "SYNC_FLUSH":
                sent.may_be_lost |= sent.status is not SendStatus.SEND_OK
            elif sent.at >= since or was_unsafe:
                sent.may_be_lost = True
        if self.plan.flush == "ASYNC_FLUSH":
            self._retry_lost |= {back for back, at in self._sent_back.items() if at >= since or was_unsafe}

    def queues_after(self, before: dict[Place, int], after: dict[Place, int]) -> None:
        """The max offsets of a broker's queues before and after a power loss."""
        for place, offset in before.items():
            if after.get(place, 0) < offset:
                if self.plan.flush == "SYNC_FLUSH" and self.plan.emulate == "5":  # 4.9 shows messages at once
                    self.violated(
                        f"{place} ended at {offset} before a power loss, and ends at {after.get(place, 0)}"
                    )
                first, last = self.regressed.get(place, (1 << 62, 0))
                self.regressed[place] = min(first, after.get(place, 0)), max(last, offset)

    # -- at the end

    def check_stored(self, records: dict[Place, list[Any]]) -> None:
        """`records` are those of each queue, from its min offset on."""
        found: dict[tuple[Place, int], str] = {}
        for place, queue in records.items():
            for number, record in enumerate(queue, queue[0].queue_offset if queue else 0):
                if record.queue_offset != number:
                    raise InvariantError(
                        f"offset {number} of {place} has the record of {record.queue_offset}"
                    )
                found[place, number] = key_of(record)
        somewhere = {(place[:2], number, key) for (place, number), key in found.items()}
        for sent in self.sent.values():
            key = found.get((sent.place, sent.offset))
            if (sent.place[:2], sent.offset, sent.key) in somewhere and sent.place[2] < 0:
                continue
            if key != sent.key and not sent.may_be_lost:
                raise InvariantError(
                    f"{sent.key}, acknowledged at {sent.at:.3f} s with {sent.status.name}, is not at offset "
                    f"{sent.offset} of {sent.place}: there is {key}"
                )

    def unconsumed(self, group: str, topic: str, records: dict[Place, list[Any]]) -> list[Missing]:
        """What is stored and the group has not got."""
        if group == "g-pop" and self.pops_expire:
            return []
        if group == REFUSING and any(place[1] in (RETRIES, DEAD_LETTERS) for place in self.regressed):
            return []  # what got a lost copy's number is not read by a group that had passed it
        return [
            Missing(group, key_of(record), f"{group}: {key_of(record)} at {record.queue_offset} of {place}")
            for place, queue in records.items()
            if place[1] == topic
            for record in queue
            if not self.consumed[group][key_of(record)]
            and (group, key_of(record)) not in self._retry_lost
            and not self._is_numbered_again(place, record)
        ]

    def unkept_promises(self, records: dict[Place, list[Any]]) -> list[Missing]:
        """What was to be consumed later, and is not."""
        excused = set().union(*self.consumed.values())
        for place, queue in records.items():
            if place in self.regressed:
                excused |= {key_of(record) for record in queue if self._is_numbered_again(place, record)}
        return [
            Missing("", key, f"{key}, promised")
            for key, sent in self.promises.items()
            if key not in excused and key not in self.recalls.asked and not sent.may_be_lost
        ]

    def is_missing(self, one: Missing) -> bool:
        """Whether it still is."""
        if not one.group and one.key in self.recalls.asked:
            return False
        groups = [one.group] if one.group else list(self.consumed)
        return not any(self.consumed[group][one.key] for group in groups)

    def _is_numbered_again(self, place: Place, record: Any) -> bool:
        """Whether a lost message had its number: a group that had passed that one does not look there again."""
        lost_from, lost_to = self.regressed.get(place, (0, 0))
        return lost_from <= record.queue_offset < lost_to

    def check_once(self, group: str) -> None:
        twice = [key for key, count in self.consumed[group].items() if count > 1]
        if twice:
            raise InvariantError(f"{group} got {twice[:3]} more than once, though nothing had failed")


def place_in(result: SendResult) -> Place:
    return result.queue.broker_name, result.queue.topic, result.queue.queue_id


def position_in(result: SendResult) -> int | None:
    """Where in the log it says that the message is, or the first of a batch."""
    if result.status is not SendStatus.SEND_OK:
        return None
    return decode_message_id(result.offset_message_id.split(",")[0]).position


def key_of(record: Any) -> str:
    return key_in(record.body)


def key_in(body: Any) -> str:
    return bytes(body).split(b" ", 1)[0].decode()


def commits(key: str) -> bool:
    """What becomes of a transaction, by the last figure of its key."""
    return int(key[-1]) % 2 == 0
