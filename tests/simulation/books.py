"""What was sent, stored and consumed, as the clients saw it, and what must be true of it.

While the world runs: an acknowledged message is at enough slaves, no offset is committed ahead of what was consumed,
no ordered message is early. At the end: what was acknowledged is stored, queues have no gap, everything stored was
consumed.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, Final

from pocketmq.client import MessageExt, SendResult, SendStatus
from pocketmq.protocol.message.offset_id import decode_message_id

from simulation.plan import Plan, broker_name_of

FORCED_WITHIN_SECONDS = 12.0
"""ASYNC_FLUSH forces the whole log every ten seconds."""

Place = tuple[str, str, int]
"""Broker name, topic, queue."""

MILLISECOND: Final = 0.001


class InvariantError(AssertionError):
    """Something that must never be true is true."""


class Sent:
    """One message that its producer was told is stored."""

    def __init__(self, key: str, result: SendResult, at: float, number: int = 0) -> None:
        queue = result.queue
        self.key, self.at, self.status = key, at, result.status
        self.place: Place = queue.broker_name, queue.topic, queue.queue_id
        self.offset = result.queue_offset + number
        self.may_be_lost = False


class Books:
    """`now` is the loop's time."""

    def __init__(self, plan: Plan, now: Callable[[], float], trace: Callable[[str], None]) -> None:
        self.plan = plan
        self._now, self._trace = now, trace
        self.violations: list[str] = []
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
        self._stored(result)
        self.sent[key] = self._kept(Sent(key, result, self._now(), number))
        self._trace(f"{key} is {result.status.name} at {result.queue_offset} of {result.queue.queue_id}")

    def promised(self, key: str, result: SendResult) -> None:
        """A message that is to be consumed later: delayed, or in a transaction that commits."""
        self._stored(result)
        self.promises[key] = self._kept(Sent(key, result, self._now()))
        self._trace(f"{key} is promised")

    def _kept(self, sent: Sent) -> Sent:
        """The answer may have been under way when the power was lost."""
        is_promised = self.plan.flush == "SYNC_FLUSH" and sent.status is SendStatus.SEND_OK
        sent.may_be_lost = not is_promised and self.tried[sent.key] <= self._power_lost_at[sent.place[0]]
        return sent

    def _stored(self, result: SendResult) -> None:
        self.counts[result.status.name] += 1
        if result.status is not SendStatus.SEND_OK:
            return
        position = decode_message_id(result.offset_message_id.split(",")[0]).position
        broker_name = result.queue.broker_name
        if self.plan.role == "SYNC_MASTER" and broker_name == "b0" and position >= self.slave_end:
            self.violated(
                f"the message at {position} is acknowledged, the slave's log ended at {self.slave_end}"
            )
        if self.plan.flush == "SYNC_FLUSH" and position >= self.flushed(broker_name):
            self.violated(f"the message at {position} is acknowledged, and not on disk")

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

    def listened(self, group: str, message: MessageExt) -> None:
        """A listener has returned without failing."""
        key = key_in(message.body)
        self.consumed[group][key] += 1
        if key not in self.tried:
            self.violated(f"{group} got {key}, which nobody has sent")
        if key in self.rolled_back:
            self.violated(f"{group} got {key}, whose transaction was rolled back")
        if self._now() < self._due.get(key, 0) - self.hurried_seconds:
            self.violated(f"{group} got {key} before it was due at {self._due[key]:.3f} s")

    def failed(self, group: str, message: MessageExt) -> None:
        """A listener is about to fail: its client has the broker store the message again."""
        self._sent_back[group, key_in(message.body)] = self._now()

    def is_in_turn(self, group: str, message: MessageExt) -> None:
        """An ordered listener gets a message: it must have got, and returned for, all before it."""
        place = message.broker_name, message.record.topic, message.queue_id
        lost_from, lost_to = self.regressed.get(place, (0, 0))
        handled = self.handled[group, place]
        early = [n for n in range(message.queue_offset) if n not in handled and not lost_from <= n < lost_to]
        if early:
            self.violated(f"{group} got {message.queue_offset} of {place} before {early[:3]}")

    def returned(self, group: str, message: MessageExt) -> None:
        """A listener has returned, or failed."""
        position = message.commit_log_offset
        # 4.9 shows messages at once. A slave shows what its own disk has.
        if self.plan.flush == "SYNC_FLUSH" and self.plan.emulate == "5":
            holders = [name for name in self.plan.brokers if broker_name_of(name) == message.broker_name]
            if position >= max(self.flushed(name) for name in holders):
                self.violated(f"the message at {position} is consumed, and not on disk")
        if not message.record.topic.startswith("%"):
            place = message.broker_name, message.record.topic, message.queue_id
            self.handled[group, place].add(message.queue_offset)
        self._trace(f"{group} consumed {message.queue_offset} of {message.record.topic} {message.queue_id}")

    def committed(self, broker_name: str, topic: str, group: str, queue_id: int, offset: int) -> None:
        """A broker has stored an offset of a group."""
        self._trace(f"{group} commits {offset} of {topic} {queue_id}")
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

    def power_lost(self, broker_name: str, *, was_unsafe: bool) -> None:
        """ASYNC_FLUSH may lose what is younger than the last pass over the whole log; `was_unsafe`: all of it that
        the disk had refused or delayed."""
        self._power_lost_at[broker_name] = self._now()
        since = self._now() - FORCED_WITHIN_SECONDS
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
        for sent in self.sent.values():
            key = found.get((sent.place, sent.offset))
            if key != sent.key and not sent.may_be_lost:
                raise InvariantError(
                    f"{sent.key}, acknowledged at {sent.at:.3f} s with {sent.status.name}, is not at offset "
                    f"{sent.offset} of {sent.place}: there is {key}"
                )

    def unconsumed(self, group: str, topic: str, records: dict[Place, list[Any]]) -> list[str]:
        """What is stored and the group has not got."""
        if group == "g-pop" and self.pops_expire:
            return []
        return [
            f"{group}: {key_of(record)} at {record.queue_offset} of {place}"
            for place, queue in records.items()
            for record in queue
            if place[1] == topic
            and not self.consumed[group][key_of(record)]
            and (group, key_of(record)) not in self._retry_lost
            and not self._is_numbered_again(place, record)
        ]

    def unkept_promises(self, records: dict[Place, list[Any]]) -> list[str]:
        """What was to be consumed later, and is not."""
        excused = set().union(*self.consumed.values())
        for place, queue in records.items():
            excused |= {key_of(record) for record in queue if self._is_numbered_again(place, record)}
        return [
            f"{key}, promised"
            for key, sent in self.promises.items()
            if key not in excused and not sent.may_be_lost
        ]

    def _is_numbered_again(self, place: Place, record: Any) -> bool:
        """Whether a lost message had its number: a group that had passed that one does not look there again."""
        lost_from, lost_to = self.regressed.get(place, (0, 0))
        return lost_from <= record.queue_offset < lost_to

    def check_once(self, group: str) -> None:
        twice = [key for key, count in self.consumed[group].items() if count > 1]
        if twice:
            raise InvariantError(f"{group} got {twice[:3]} more than once, though nothing had failed")


def key_of(record: Any) -> str:
    return key_in(record.body)


def key_in(body: Any) -> str:
    return bytes(body).split(b" ", 1)[0].decode()
