"""Messages that a group refuses for good, which end among its dead letters.

No copy is delivered that has been tried often enough, and each stored copy only once, but for what faults explain.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from pocketmq.client import MessageExt
from pocketmq.protocol.message.topics import dlq_topic, retry_topic

GROUP: Final = "g-refusing"
TOPIC: Final = "t-refusing"
DEAD_LETTERS: Final = dlq_topic(GROUP)
RETRIES: Final = retry_topic(GROUP)
MAX_RECONSUME_TIMES: Final = 1
MOST_PER_FAULT: Final = 2
"""Further deliveries of one copy: its queue gets another member, and gets its former one back."""

Place = tuple[str, str, int]


def is_refused(key: str) -> bool:
    """What the listener does with a message, by the last figure of its key."""
    return int(key[-1]) % 3 == 0


class DeadLetters:
    """`explained` is how often one copy may be delivered."""

    def __init__(self, explained: int, violated: Callable[[str], None]) -> None:
        self._explained, self._violated = explained, violated
        self._deliveries: Counter[tuple[Place, int]] = Counter()

    def delivered(self, message: MessageExt) -> None:
        """The group's listener gets a message. What its client delivers again by itself, because the broker took
        nothing back, does not count."""
        stored = message.record
        if stored.reconsume_times > MAX_RECONSUME_TIMES:
            self._violated(f"{GROUP} got a copy that was tried {stored.reconsume_times} times before")
        if message.reconsume_times != stored.reconsume_times:
            return
        copy = (message.broker_name, stored.topic, message.queue_id), message.queue_offset
        self._deliveries[copy] += 1
        if self._deliveries[copy] > self._explained:
            self._violated(f"{GROUP} got {copy[1]} of {copy[0]} {self._deliveries[copy]} times")

    def check(self, records: dict[Place, list[Any]], key_of: Callable[[Any], str], *, is_exact: bool) -> None:
        """At the end. `is_exact`: nothing has failed, so that each refused message is one dead letter."""
        dead = _count(records, DEAD_LETTERS, key_of)
        for key in dead:
            if not is_refused(key):
                self._violated(f"{key} is a dead letter of {GROUP}, which has consumed it")
        stored = _count(records, TOPIC, key_of)
        for key, count in stored.items():
            if is_exact and is_refused(key) and dead[key] != count:
                self._violated(f"{key} is stored {count} times, and {dead[key]} times a dead letter")


def _count(records: dict[Place, list[Any]], topic: str, key_of: Callable[[Any], str]) -> Counter[str]:
    return Counter(
        key_of(record) for place, queue in records.items() if place[1] == topic for record in queue
    )
