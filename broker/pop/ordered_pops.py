"""Orderly pops: the messages in flight of each queue, and when the queue is free. Kept in consumerOrderInfo.json.

    {"table": {"topic@group": {queue: {
        "popTime", "i" invisible ms, "o" [first offset, then differences from it], "cm" bits of those acknowledged,
        "ot" {offset: next visible time}, "oc" {offset: times consumed before}, "l" last pop, "a" attempt id}}}}

While a message of a queue is in flight, the queue is blocked for the group: until each message is acknowledged or its
invisible time is over; then an alarm wakes the requests that wait for it. Only a pop with the attempt id of the
previous one gets the same messages again at once. The group's offset is the first one that is not acknowledged. Orderly
pops have no checkpoints, so no message is copied to a retry topic. Mirrors `QueueLevelConsumerManager` and its lock
timer; owned by the event loop.
"""

from collections.abc import Callable, Generator, Sequence
from enum import Enum
from functools import partial
from typing import Final

import msgspec
from msgspec import field
from pocketmq.protocol.bodies.body import Body
from pocketmq.protocol.message.pop_receipt import retry_flag
from pocketmq.store import layout

from ..state.broker_state import BrokerState
from ..tables.json_table import JsonTable, TextOf
from ..tables.table_text import MapText, file_pieces
from ..time.timers import Timer


class NotAcknowledged(Enum):
    """Why an ack changed nothing."""

    STALE = -2
    """It belongs to an older pop; the broker accepts it."""
    NOT_IN_FLIGHT = -1
    """Its offset is not in flight; the broker refuses it."""


FORGOTTEN_AFTER_MS: Final = 86_400_000
MAX_ALARMS: Final = 10_000
"""Limit of queues with an alarm. Further queues also become free in time, but no request is woken then."""


class OrderInfo(Body, frozen=True):
    """The messages of one queue in flight for one group (official OrderInfo). Times in ms."""

    pop_time: int = 0
    invisible_time: int | None = field(name="i", default=None)
    offset_list: list[int] = field(name="o", default_factory=list)
    next_visible: dict[int, int] | None = field(name="ot", default=None)
    consumed: dict[int, int] | None = field(name="oc", default=None)
    last_consume: int = field(name="l", default=0)
    done_bits: int = field(name="cm", default=0)
    attempt_id: str | None = field(name="a", default=None)

    def offsets(self) -> list[int]:
        first = self.offset_list[0] if self.offset_list else 0
        return [first + difference if index else first for index, difference in enumerate(self.offset_list)]

    def open_until(self) -> list[int]:
        """For each message that is not acknowledged, when it may be delivered again."""
        default = self.pop_time + (self.invisible_time or 0)
        later = self.next_visible or {}
        return [
            later.get(offset, default)
            for index, offset in enumerate(self.offsets())
            if not self.done_bits >> index & 1
        ]


class OrderFile(Body, frozen=True):
    table: dict[str, dict[int, OrderInfo]] = field(default_factory=dict)


class OrderedPops(JsonTable):
    state_fields = ("_table",)
    body_type = OrderFile

    def __init__(self, state: BrokerState, on_free: Callable[[str, str, int], None]) -> None:
        """`on_free` is called with topic, group and queue id when the time of a blocked queue is over."""
        super().__init__(state.folder / layout.CONSUMER_ORDER, state.clock.now_ms)
        self._state = state
        self._text = MapText(dict.copy)
        self._table: dict[str, dict[int, OrderInfo]] = {}
        self._on_free = on_free
        self._alarms: dict[tuple[str, str, int], Timer] = {}

    def is_blocked(
        self, attempt_id: str | None, topic: str, group: str, queue_id: int, invisible_time_ms: int
    ) -> bool:
        info = self._find(topic, group, queue_id)
        if info is None or not info.offset_list:
            return False
        if info.attempt_id is not None and info.attempt_id == attempt_id:
            return False
        if not info.invisible_time or info.invisible_time <= 0:
            info = msgspec.structs.replace(info, invisible_time=invisible_time_ms)
            self._put(topic, group, queue_id, info)
        now_ms = self._now_ms()
        return any(now_ms < until_ms for until_ms in info.open_until())

    def record_pop(
        self,
        attempt_id: str | None,
        topic: str,
        group: str,
        queue_id: int,
        pop_time_ms: int,
        invisible_time_ms: int,
        offsets: Sequence[int],
    ) -> tuple[list[str], int]:
        """Record delivered messages; returns the parts of orderCountInfo, and how often at least each was delivered
        before."""
        before = self._find(topic, group, queue_id)
        first = offsets[0]
        info = OrderInfo(
            pop_time=pop_time_ms,
            invisible_time=invisible_time_ms,
            offset_list=[first, *(offset - first for offset in offsets[1:])],
            last_consume=self._now_ms(),
            attempt_id=attempt_id,
            consumed=None if before is None else _count_deliveries(before, attempt_id, offsets),
        )
        self._put(topic, group, queue_id, info)
        self._set_alarm(topic, group, queue_id, info)
        flag, consumed = retry_flag(topic), info.consumed or {}
        parts = [f"{flag} qo{queue_id}%{offset} {times}" for offset, times in consumed.items()]
        least = min(consumed.values()) if len(consumed) == len(offsets) else 0
        return [*parts, f"{flag} {queue_id} {least}"], least

    def acknowledge(
        self, topic: str, group: str, queue_id: int, offset: int, pop_time_ms: int, committed: int
    ) -> int | NotAcknowledged:
        """Acknowledge one message. Returns the offset at which the group continues; it is at `committed` now.

        Without an entry, which a kill may lose, only the next message is acknowledged. The official broker moves the
        group behind any message then, and those before it are lost.
        """
        info = self._find(topic, group, queue_id)
        if info is None:
            return offset + 1 if offset == committed else NotAcknowledged.STALE
        if not info.offset_list:
            return NotAcknowledged.NOT_IN_FLIGHT
        if pop_time_ms != info.pop_time:
            return NotAcknowledged.STALE
        offsets = info.offsets()
        if offset not in offsets:
            return NotAcknowledged.NOT_IN_FLIGHT
        done_bits = info.done_bits | 1 << offsets.index(offset)
        info = msgspec.structs.replace(info, done_bits=done_bits)
        self._put(topic, group, queue_id, info)
        self._set_alarm(topic, group, queue_id, info)
        for index, unfinished in enumerate(offsets):
            if not done_bits >> index & 1:
                return unfinished
        return offsets[-1] + 1

    def hide_until(
        self, topic: str, group: str, queue_id: int, offset: int, pop_time_ms: int, until_ms: int
    ) -> None:
        info = self._find(topic, group, queue_id)
        if info is None or info.pop_time != pop_time_ms or offset not in info.offsets():
            return
        info = msgspec.structs.replace(info, next_visible={**(info.next_visible or {}), offset: until_ms})
        self._put(topic, group, queue_id, info)
        self._set_alarm(topic, group, queue_id, info)

    def clear(self, topic: str, group: str, queue_id: int) -> None:
        """Delete the entry of a queue whose offset was reset."""
        if self._table.get(_key(topic, group), {}).pop(queue_id, None) is not None:
            self.dirty = True

    def clean(self, queues_of: Callable[[str, str], int]) -> Generator[None]:
        """Delete queues that were deleted or not popped for a day. `queues_of(topic, group)` is their number. Yields
        after each topic and group."""
        limit_ms = self._now_ms() - FORGOTTEN_AFTER_MS
        for key, queues in list(self._table.items()):
            yield
            topic, _, group = key.partition("@")
            count = queues_of(topic, group)
            for queue_id, info in list(queues.items()):
                if queue_id >= count or info.last_consume < limit_ms:
                    del queues[queue_id]
                    self.dirty = True
            if not queues and self._table.get(key) is queues:
                del self._table[key]
                self.dirty = True

    def _find(self, topic: str, group: str, queue_id: int) -> OrderInfo | None:
        queues = self._table.get(_key(topic, group))
        return None if queues is None else queues.get(queue_id)

    def _put(self, topic: str, group: str, queue_id: int, info: OrderInfo) -> None:
        self._table.setdefault(_key(topic, group), {})[queue_id] = info
        self.dirty = True

    # --- alarms

    def set_alarms(self) -> None:
        """Set that of each queue, after the table was loaded."""
        for key, queues in self._table.items():
            topic, _, group = key.partition("@")
            for queue_id, info in queues.items():
                self._set_alarm(topic, group, queue_id, info)

    def stop_alarms(self) -> None:
        for timer in self._alarms.values():
            timer.cancel()
        self._alarms.clear()

    def _set_alarm(self, topic: str, group: str, queue_id: int, info: OrderInfo) -> None:
        """Replace the alarm of a queue, which rings when all its messages may be delivered again."""
        state, key, open_until = self._state, (topic, group, queue_id), info.open_until()
        if not open_until or not state.config.enable_notify_after_pop_order_lock_release:
            return
        earlier = self._alarms.pop(key, None)
        if earlier is not None:
            earlier.cancel()
        if len(self._alarms) < MAX_ALARMS:
            seconds = max(max(open_until) - state.clock.now_ms() + 1, 0) / 1000
            self._alarms[key] = state.timers.call_later(seconds, partial(self._ring, key))

    def _ring(self, key: tuple[str, str, int]) -> None:
        self._alarms.pop(key, None)
        self._on_free(*key)

    # --- text

    def _frozen(self) -> TextOf:
        table = self._table.copy()
        return lambda: file_pieces(
            {
                "orderInfoCount": len(table),
                "orderedConsumptionLevel": "QUEUE",
                "table": self._text.pieces(table),
            }
        )

    def _read(self, stored: OrderFile) -> None:
        self._table = stored.table


def _key(topic: str, group: str) -> str:
    return f"{topic}@{group}"


def _count_deliveries(before: OrderInfo, attempt_id: str | None, offsets: Sequence[int]) -> dict[int, int]:
    """How often each message was delivered before; the same attempt does not count again."""
    counts = before.consumed or {}
    if before.attempt_id is not None and before.attempt_id == attempt_id:
        return counts
    delivered_before = set(before.offsets())
    return {offset: counts.get(offset, 0) + 1 for offset in offsets if offset in delivered_before}
