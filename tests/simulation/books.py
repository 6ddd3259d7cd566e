"""What was sent, stored and consumed, as the clients saw it, and what must be true of it.

While the world runs: an acknowledged message is at enough slaves, no offset is committed ahead of what was consumed,
no ordered message is early. At the end: what was acknowledged is stored, queues have no gap, everything stored was
consumed.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from pocketmq.client import MessageExt, SendResult, SendStatus

from simulation.plan import Plan

FORCED_WITHIN_SECONDS = 12.0
"""ASYNC_FLUSH forces the whole log every ten seconds."""

Place = tuple[str, str, int]
"""Broker name, topic, queue."""


class InvariantError(AssertionError):
    """Something that must never be true is true."""


class Sent:
    """One message that its producer was told is stored."""

    def __init__(self, key: str, result: SendResult, at: float) -> None:
        queue = result.queue
        self.key, self.at, self.status = key, at, result.status
        self.place: Place = queue.broker_name, queue.topic, queue.queue_id
        self.offset = result.queue_offset
        self.may_be_lost = False


class Books:
    """`now` is the loop's time."""

    def __init__(self, plan: Plan, now: Callable[[], float], trace: Callable[[str], None]) -> None:
        self.plan = plan
        self._now, self._trace = now, trace
        self.violations: list[str] = []
        self.sent: dict[str, Sent] = {}
        self.tried: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.handled: defaultdict[tuple[str, Place], set[int]] = defaultdict(set)
        """Offsets that a group's listener has returned for, by queue."""
        self.consumed: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """Keys by group."""
        self.regressed: dict[Place, tuple[int, int]] = {}
        """Where a power loss took messages away that consumers may have seen: offsets from and to."""
        self._checked: dict[tuple[str, Place], int] = {}

    def violated(self, what: str) -> None:
        """Not raised: the product would catch it."""
        self.violations.append(what)

    # -- while it runs

    def acknowledged(self, key: str, result: SendResult) -> None:
        self.counts[result.status.name] += 1
        self.sent[key] = Sent(key, result, self._now())
        self._trace(f"{key} is {result.status.name} at {result.queue_offset} of {result.queue.queue_id}")

    def listened(self, group: str, message: MessageExt) -> None:
        """A listener has returned without failing."""
        key = bytes(message.body).split(b" ", 1)[0].decode()
        self.consumed[group][key] += 1
        if key not in self.tried:
            self.violated(f"{group} got {key}, which nobody has sent")

    def returned(self, group: str, message: MessageExt) -> None:
        """A listener has returned, or failed."""
        if message.reconsume_times == 0:
            place = message.broker_name, message.record.topic, message.queue_id
            self.handled[group, place].add(message.queue_offset)
        self._trace(f"{group} consumed {message.queue_offset} of {message.record.topic} {message.queue_id}")

    def committed(self, broker_name: str, topic: str, group: str, queue_id: int, offset: int) -> None:
        """A broker has stored an offset of a group."""
        self._trace(f"{group} commits {offset} of {topic} {queue_id}")
        place = broker_name, topic, queue_id
        key = group, place
        if topic.startswith("%") or key not in self.handled:
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
        if self.plan.flush == "SYNC_FLUSH":
            for sent in self.sent.values():
                sent.may_be_lost |= sent.status is not SendStatus.SEND_OK and sent.place[0] == broker_name
            return
        since = self._now() - FORCED_WITHIN_SECONDS
        for sent in self.sent.values():
            if sent.place[0] == broker_name and (sent.at >= since or was_unsafe):
                sent.may_be_lost = True

    def queues_after(self, before: dict[Place, int], after: dict[Place, int]) -> None:
        """The max offsets of a broker's queues before and after a power loss."""
        for place, offset in before.items():
            if after.get(place, 0) < offset:
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
        missing = []
        for place, queue in records.items():
            lost_from, lost_to = self.regressed.get(place, (0, 0))
            missing += [
                f"{key_of(record)} at {record.queue_offset} of {place}"
                for record in queue
                if place[1] == topic
                and not self.consumed[group][key_of(record)]
                and not lost_from <= record.queue_offset < lost_to
            ]
        return missing


def key_of(record: Any) -> str:
    return bytes(record.body).split(b" ", 1)[0].decode()
