"""The queue of a message: round robin, avoiding brokers that failed, or by a selector of the user.

Without fault tolerance: the next queue in turn whose broker is not `last_broker_name`. With it: the next one whose
broker is available (else: reachable) and not that broker. None of these: simply the next in turn. 4.9 clients with
fault tolerance do not avoid the last broker and fall back to one of the better half of the slow brokers.

    latency from   50  100  550   1800  3000  5000   15000 ms
    avoided for     0    0  2000  5000  6000  10000  30000 ms

A failed send that isolates counts as 10 s. 4.9 clients: thresholds 50 100 550 1000 2000 3000 15000, times 0 0 30000
60000 120000 180000 600000, a failed send counts as 30 s; nothing is "unreachable". An isolation is prolonged, never
shortened. Official classes: TopicPublishInfo, ThreadLocalIndex, MQFaultStrategy, LatencyFaultToleranceImpl, and the
selectors of org.apache.rocketmq.client.producer.selector (SelectMessageQueueByMachineRoom chooses nothing and is not
here).
"""

import inspect
import struct
from bisect import bisect_right
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, Protocol

import msgspec
from pocketmq.protocol.message.java_strings import java_hash
from pocketmq.protocol.message.message_queue import MessageQueue

from ..errors import SelectionFailed
from ..settings.producer_settings import ProducerSettings

ISOLATION_LATENCY_MS: Final = 10_000
DETECTOR_PERIOD_MS: Final = 3_000
"""The detector looks every so often at which brokers are due."""


class _FaultItem(msgspec.Struct):
    available_from_ms: int = 0
    check_at_ms: int = 0
    reachable: bool = True


class LatencyFaultTolerance:
    """How the brokers of one producer behaved lately. Owned by the event loop."""

    def __init__(self, now_ms: Callable[[], int], settings: ProducerSettings) -> None:
        self._now_ms = now_ms
        self._settings = settings
        self._items: dict[str, _FaultItem] = {}

    def update(self, broker_name: str, latency_ms: int, *, isolate: bool, reachable: bool) -> None:
        """Note how a send to the broker went."""
        item = self._items.setdefault(broker_name, _FaultItem())
        item.reachable = reachable
        duration_ms = self.not_available_ms(ISOLATION_LATENCY_MS if isolate else latency_ms)
        if duration_ms > 0:
            item.available_from_ms = max(item.available_from_ms, self._now_ms() + duration_ms)

    def not_available_ms(self, latency_ms: int) -> int:
        """How long a broker with this latency is avoided."""
        place = bisect_right(self._settings.latency_max, latency_ms)
        return self._settings.not_available_duration[place - 1] if place else 0

    def is_available(self, broker_name: str) -> bool:
        item = self._items.get(broker_name)
        return item is None or self._now_ms() >= item.available_from_ms

    def is_reachable(self, broker_name: str) -> bool:
        item = self._items.get(broker_name)
        return item is None or item.reachable

    def remove(self, broker_name: str) -> None:
        """Forget a broker that has no address any more."""
        self._items.pop(broker_name, None)

    def due_for_detection(self) -> list[str]:
        """Brokers to probe now; each is due again after the interval (official detectByOneRound)."""
        now_ms = self._now_ms()
        due = []
        for name, item in self._items.items():
            if now_ms >= item.check_at_ms:
                item.check_at_ms = now_ms + self._settings.detect_interval
                due.append(name)
        return due

    def note_detected(self, broker_name: str) -> None:
        """A probe was answered: the broker may be used again."""
        item = self._items.get(broker_name)
        if item is not None:
            item.reachable = True


_MASK: Final = 0x7FFFFFFF
_DOUBLE: Final = struct.Struct(">d")
_LONG: Final = struct.Struct(">q")


class MessageQueueSelector(Protocol):
    """Official MessageQueueSelector: the queue of a message, out of those of its topic."""

    def __call__(self, queues: Sequence[MessageQueue], message: Any, arg: Any) -> MessageQueue: ...


class QueueTurn:
    """Round robin over the queues of one topic; begins at random, so that producers do not all use the same queue."""

    __slots__ = ("_index", "_random", "unused_rounds")

    def __init__(self, random: Random | None = None) -> None:
        self._random = random or Random()
        self._index = self._random.randrange(2**31)
        self.unused_rounds = 0
        """Refreshes of the routes since the topic was last sent to."""

    def next(self) -> int:
        """The next number, 0..2^31-1; the caller reduces it modulo the number of queues."""
        self._index = (self._index + 1) & _MASK
        return self._index

    def restart(self) -> None:
        """Continue from a random number."""
        self._index = self._random.randrange(_MASK)


def select_one_message_queue(
    queues: Sequence[MessageQueue],
    turn: QueueTurn,
    *,
    last_broker_name: str | None = None,
    faults: LatencyFaultTolerance | None = None,
    restart: bool = False,
) -> MessageQueue:
    """The queue of the next attempt. `queues` not empty; `faults` None with fault tolerance off.

    `last_broker_name`: the broker of the attempt before; `restart`: there was one.
    """
    if faults is None:
        if last_broker_name is None:
            return queues[turn.next() % len(queues)]
        chosen = _first(queues, turn, lambda name: name != last_broker_name)
        return chosen or queues[turn.next() % len(queues)]
    if restart:
        turn.restart()
    for is_good in (faults.is_available, faults.is_reachable):
        chosen = _first(queues, turn, lambda name, good=is_good: name != last_broker_name and good(name))  # type: ignore[misc]
        if chosen is not None:
            return chosen
    return queues[turn.next() % len(queues)]


def _first(
    queues: Sequence[MessageQueue], turn: QueueTurn, accepts: Callable[[str], bool]
) -> MessageQueue | None:
    """One round: the first queue whose broker is accepted."""
    for _ in range(len(queues)):
        queue = queues[turn.next() % len(queues)]
        if accepts(queue.broker_name):
            return queue
    return None


def invoke_selector(
    selector: MessageQueueSelector, queues: Sequence[MessageQueue], message: Any, arg: Any
) -> MessageQueue:
    """The queue a selector chooses. Raises SelectionFailed, in the official words if they exist."""
    try:
        chosen = selector(queues, message, arg)
    except Exception as error:
        raise SelectionFailed("select message queue threw exception.") from error
    if chosen is None:
        raise SelectionFailed("select message queue return null.")
    if not isinstance(chosen, MessageQueue):
        if inspect.iscoroutine(chosen):
            chosen.close()
        raise SelectionFailed(f"a selector must return one of the queues, not {type(chosen).__name__}")
    return chosen


def select_by_hash(queues: Sequence[MessageQueue], message: Any, arg: Any) -> MessageQueue:
    """The queue Java's SelectMessageQueueByHash chooses for the same argument: equal arguments stay in order."""
    return queues[abs(java_hash_code(arg)) % len(queues)]


class SelectByRandom:
    """Any queue (official SelectMessageQueueByRandom)."""

    def __init__(self, random: Random | None = None) -> None:
        self._random = random or Random()

    def __call__(self, queues: Sequence[MessageQueue], message: Any, arg: Any) -> MessageQueue:
        return self._random.choice(queues)


def java_hash_code(value: object) -> int:
    """Java's hashCode of a str, int, float or bool. Raises SelectionFailed for anything else.

    An int counts as Integer if it fits, else as Long. The hash of other Python objects differs between processes, so
    equal arguments would not stay in one queue.
    """
    if isinstance(value, str):
        return java_hash(value)
    if isinstance(value, bool):
        return 1231 if value else 1237
    if isinstance(value, int):
        if -(2**31) <= value < 2**31:
            return value
        if -(2**63) <= value < 2**63:
            return _fold(value & 0xFFFFFFFFFFFFFFFF)
        raise SelectionFailed(f"{value} does not fit a Java long")
    if isinstance(value, float):
        bits: int = _LONG.unpack(_DOUBLE.pack(value))[0]
        return _fold(bits & 0xFFFFFFFFFFFFFFFF)
    raise SelectionFailed(
        f"a queue is chosen by the hash of a str, int, float or bool, not {type(value).__name__}"
    )


def _fold(bits: int) -> int:
    """64 bits to the signed 32 of Long.hashCode."""
    folded = (bits ^ bits >> 32) & 0xFFFFFFFF
    return folded - 0x1_0000_0000 if folded & 0x8000_0000 else folded
