"""Reads one op queue for the check: which half messages have ended, and up to which op message all are processed."""

from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.topics import OP_HALF_TOPIC
from pocketmq.store.lookup.consume_queue import ConsumeQueue

from ..state.broker_state import BrokerState
from ..storing.numbers import parse_number
from ..storing.records import record_at_offset
from .half_messages import OP_TAG


class OpQueue:
    """The ended half messages from `half_begin` on. Op messages are read from `begin` on, only as far as needed."""

    def __init__(self, state: BrokerState, queue_id: int, begin: int, half_begin: int) -> None:
        self._state = state
        self._queue_id = queue_id
        self._half_begin = half_begin
        self._next = begin
        self._begin = begin
        self._ended_by: dict[int, int] = {}
        """Offset of a half message -> offset of the op message that names it."""
        self._open: dict[int, int] = {}
        """Op offset -> number of its half messages that the check has not passed yet."""
        self._done: set[int] = set()
        self.behind: set[int] = set()
        """Ended half messages before `half_begin`."""

    def take(self, half_offset: int) -> bool:
        """Whether this half message has ended; if so, the check passes it."""
        op_offset = self._ended_by.pop(half_offset, None)
        if op_offset is None:
            return False
        self._open[op_offset] -= 1
        if not self._open[op_offset]:
            del self._open[op_offset]
            self._done.add(op_offset)
        return True

    def read_more(self, count: int) -> bool:
        """Read up to `count` op messages; False at the end of their queue."""
        queue = self._state.store.consume_queue(OP_HALF_TOPIC, self._queue_id)
        if queue is None:
            return False
        self._next = max(self._next, queue.min_offset)
        end = min(queue.max_offset, self._next + count)
        has_read = self._next < end
        while self._next < end:
            self._read(queue, self._next)
            self._next += 1
        return has_read

    def _read(self, queue: ConsumeQueue, op_offset: int) -> None:
        record = record_at_offset(self._state.store, queue, op_offset)
        named = 0
        if record is not None and decode_properties(record.properties).get(names.TAGS) == OP_TAG:
            for text in bytes(record.body).split(b","):
                half_offset = parse_number(text.decode("latin-1"), 0)
                if half_offset is None:
                    continue
                if half_offset < self._half_begin:
                    self.behind.add(half_offset)
                elif half_offset not in self._ended_by:
                    self._ended_by[half_offset] = op_offset
                    named += 1
        if named:
            self._open[op_offset] = named
        else:
            self._done.add(op_offset)

    @property
    def passed(self) -> int:
        """The first op offset that is not completely processed."""
        offset = self._begin
        while offset in self._done:
            offset += 1
        return offset
