"""The queue of a message: round robin, avoiding the broker that failed last, or by a selector of the user.

Without fault tolerance: the next queue in turn whose broker is not `last_broker_name`. With it: the next one whose
broker is available (else: reachable) and not that broker. None of these: simply the next in turn. 4.9 clients with
fault tolerance do not avoid the last broker and fall back to one of the better half of the slow brokers.
Official classes: TopicPublishInfo, ThreadLocalIndex, MQFaultStrategy.selectOneMessageQueue, and the selectors of
org.apache.rocketmq.client.producer.selector (SelectMessageQueueByMachineRoom chooses nothing and is not here).
"""

import inspect
import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, Protocol

from pocketmq.protocol.message.java_strings import java_hash
from pocketmq.protocol.message.message_queue import MessageQueue

from ..errors import SelectionFailed
from .fault_tolerance import LatencyFaultTolerance

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
