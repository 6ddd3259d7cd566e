"""Checks open half messages with their producers, every transactionCheckInterval.

The check reads the half queue and the op queue together, from the offsets of the group CID_RMQ_SYS_TRANS. For the first
half message, the first of these rules that applies decides:

    an op message names it                       it has ended: next message
    checked transactionCheckMax times, or        moved to TRANS_CHECK_MAX_TIME_TOPIC: next message
      born longer ago than the log is kept
    stored after this round began                end of the round
    younger than transactionTimeOut              end of the round
    younger than its CHECK_IMMUNITY_TIME...      put back at the end of the queue: next message
    else                                         put back with TRANSACTION_CHECK_TIMES raised, and 39 sent to one
                                                 connection of its producer group, the next one each time: next message

So each open half message moves to the end of the queue. An op offset moves once all its half messages are passed.
Mirrors `TransactionalMessageServiceImpl.check`. If a message ends after it was put back, the official check does not
notice that; ours drops the copy, so it is not committed twice.
"""

import asyncio
import logging
from typing import Final

import msgspec
from pocketmq.core.properties import BUCKETS, encode_stored, read_properties
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.offset_id import encode_message_id
from pocketmq.protocol.message.record import Record, encode_record
from pocketmq.protocol.message.topics import CHECK_MAX_TIME_TOPIC, HALF_TOPIC, OP_HALF_TOPIC
from pocketmq.protocol.requests.send import CheckTransactionState
from pocketmq.store import PutStatus
from pocketmq.store.lookup.consume_queue import ConsumeQueue

from ..bounded_cache import SaidOnce
from ..membership.producer_groups import ProducerGroups
from ..state.broker_state import BrokerState
from ..storing.messages import changes_of, copy_of, real_place, record_at_offset
from ..storing.numbers import parse_number
from ..time.slices import Slice
from .half_messages import OP_TAG, HalfMessages

_log = logging.getLogger("pocketmq.transactions")

CHECK_GROUP: Final = "CID_RMQ_SYS_TRANS"
LONGEST_ROUND_MS: Final = 60_000
MAX_ENDED_BEHIND: Final = 100_000
"""Limit of remembered messages that ended after they were put back."""
HOUR_MS: Final = 3_600_000


class OpQueue:
    """Which half messages from `half_begin` on have ended, and up to which op message all are processed. Op messages
    are read from `begin` on, only as far as needed."""

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
        self.ended_earlier: set[int] = set()
        """Ended half messages before `half_begin`."""

    def pass_over(self, half_offset: int) -> bool:
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
        if record is not None and read_properties(record.properties).get(names.TAGS) == OP_TAG:
            for text in bytes(record.body).split(b","):
                half_offset = parse_number(text.decode("latin-1"), 0)
                if half_offset is None:
                    continue
                if half_offset < self._half_begin:
                    self.ended_earlier.add(half_offset)
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


class TransactionCheck:
    """Runs the rounds. `start` and `stop` mirror each other; a slave checks nothing."""

    state_fields = ("_ended_behind",)
    """A test companion sets them back."""

    def __init__(self, state: BrokerState, half_messages: HalfMessages, producers: ProducerGroups) -> None:
        self._state = state
        self._half_messages = half_messages
        self._producers = producers
        self._said = SaidOnce()
        self._task: asyncio.Task[None] | None = None
        self._given_up: list[int] = []
        """Offsets, in this round and queue."""
        self._ended_behind: dict[tuple[int, int], None] = {}
        """(queue id, offset) of half messages that ended after they were put back."""
        self._sent_ms: dict[tuple[int, int], int] = {}
        """In virtual time: (queue id, offset) of copies that were put back -> when the broker got the message."""

    def start(self) -> None:
        if self._task is None and not self._state.config.is_slave:
            self._sent_ms.clear()
            self._task = asyncio.get_running_loop().create_task(self._run(), name="transaction check")

    def open(self) -> None:
        """Go back to the end of a queue that lost messages which the check had passed: new ones get their numbers. A
        slave's offsets are the master's, which may be ahead of its queues."""
        store, offsets = self._state.store, self._state.offsets
        if self._state.config.is_slave:
            return
        for topic in (HALF_TOPIC, OP_HALF_TOPIC):
            for queue_id in {0, *(queue.queue_id for queue in store.queues_of(topic))}:
                offset, end = offsets.query(topic, CHECK_GROUP, queue_id), store.max_offset(topic, queue_id)
                if offset > end:
                    _log.warning(
                        "%s queue %d ends at %d, it was checked up to %d", topic, queue_id, end, offset
                    )
                    offsets.commit(topic, CHECK_GROUP, queue_id, end)

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            interval_ms = self._state.config.transaction_check_interval
            await self._state.timers.sleep(interval_ms / 1000, self._next_work)
            try:
                await self.check()
            except Exception:
                _log.exception("a transaction check failed")

    def _next_work(self) -> int | None:
        """Now, if a half queue has messages that the check has not passed."""
        store, offsets = self._state.store, self._state.offsets
        for queue in store.queues_of(HALF_TOPIC):
            if offsets.query(HALF_TOPIC, CHECK_GROUP, queue.queue_id) < queue.max_offset:
                return self._state.clock.now_ms()
        return None

    async def check(self) -> None:
        """One round over all half queues. In the 4.9 line it creates the half topic if it does not exist."""
        self._state.topics.create_for_send_back(HALF_TOPIC, 1)
        for queue in self._state.store.queues_of(HALF_TOPIC):
            await self._check_queue(queue)

    async def _check_queue(self, queue: ConsumeQueue) -> None:
        state, queue_id = self._state, queue.queue_id
        start_ms = state.clock.now_ms()
        half_begin = self._position(HALF_TOPIC, queue_id, queue)
        op_begin = self._position(OP_HALF_TOPIC, queue_id, state.store.consume_queue(OP_HALF_TOPIC, queue_id))
        ops = OpQueue(state, queue_id, op_begin, half_begin)
        offset, part = half_begin, Slice()
        try:
            while offset < queue.max_offset and state.clock.now_ms() - start_ms <= LONGEST_ROUND_MS:
                await part.pause_if_over()  # a message may have 4 MiB
                if ops.pass_over(offset) or self._half_messages.is_ended(queue_id, offset):
                    offset += 1
                elif ops.read_more(32):
                    continue
                elif self._check_one(queue, offset, start_ms, ops):
                    offset += 1
                else:
                    break
        finally:
            self._say_given_up(queue_id)
        for ended in ops.ended_earlier:
            self._ended_behind[queue_id, ended] = None
        while len(self._ended_behind) > MAX_ENDED_BEHIND:
            del self._ended_behind[next(iter(self._ended_behind))]
        for key in [key for key in self._sent_ms if key[0] == queue_id and key[1] < offset]:
            del self._sent_ms[key]
        if offset != half_begin:
            state.offsets.commit(HALF_TOPIC, CHECK_GROUP, queue_id, offset)
        if ops.passed != op_begin:
            state.offsets.commit(OP_HALF_TOPIC, CHECK_GROUP, queue_id, ops.passed)

    def _say_given_up(self, queue_id: int) -> None:
        given_up, self._given_up = self._given_up, []
        if given_up:
            text = "gave up %d half messages of queue %d, the first at %d: %s has them"
            _log.warning(text, len(given_up), queue_id, given_up[0], CHECK_MAX_TIME_TOPIC)

    def _position(self, topic: str, queue_id: int, queue: ConsumeQueue | None) -> int:
        """The committed offset; the queue's minimum if there is none, or if it was deleted."""
        first = 0 if queue is None else queue.min_offset
        return max(self._state.offsets.query(topic, CHECK_GROUP, queue_id), first)

    def _check_one(self, queue: ConsumeQueue, offset: int, start_ms: int, ops: OpQueue) -> bool:
        """Apply the rules to the first half message; False if the round ends before it."""
        state, config = self._state, self._state.config
        record = record_at_offset(state.store, queue, offset)
        if record is None:
            return True
        properties = read_properties(record.properties)
        checks = _whole_number(properties.get(names.TRANSACTION_CHECK_TIMES))
        now_ms = state.clock.now_ms()
        age_ms = now_ms - self._sent_at_ms(record)
        if (checks is not None and checks >= config.transaction_check_max) or (
            age_ms > config.store.file_reserved_time * HOUR_MS
        ):
            return self._give_up(record, properties)
        if record.store_timestamp >= start_ms:
            return False
        properties[names.TRANSACTION_CHECK_TIMES] = str(1 if checks is None else checks + 1)
        immunity_ms = config.transaction_time_out
        immunity = properties.get(names.CHECK_IMMUNITY_TIME_IN_SECONDS)
        if immunity is not None:
            seconds = _whole_number(immunity)
            immunity_ms = immunity_ms if seconds is None or seconds == -1 else seconds * 1000
            if self._has_ended_original(queue.queue_id, properties, ops):
                return True
            if not self._is_older(age_ms, immunity_ms):
                properties.setdefault(names.TRANSACTION_PREPARED_QUEUE_OFFSET, str(record.queue_offset))
                properties[names.WAIT] = "false"
                return self._put_back(record, properties) is not None
        elif age_ms >= 0 and not self._is_older(age_ms, immunity_ms):
            return False
        copied = self._put_back(record, properties)
        if copied is not None:
            properties[names.WAIT] = "false"  # the copy's is unchanged
            self._send_question(copied, properties)
        return copied is not None

    def _sent_at_ms(self, record: Record) -> int:
        """When a message was sent, by the broker's clock: the time it was born, unless that clock is apart from its
        producer's."""
        if not self._state.clock.is_virtual:
            return record.born_timestamp
        return self._sent_ms.get((record.queue_id, record.queue_offset), record.store_timestamp)

    def _is_older(self, age_ms: int, limit_ms: int) -> bool:
        return age_ms > limit_ms or (age_ms == limit_ms and not self._state.config.is_5)

    def _has_ended_original(self, queue_id: int, properties: dict[str, str], ops: OpQueue) -> bool:
        """Whether this is a copy of a message that has ended since it was put back."""
        original = _whole_number(properties.get(names.TRANSACTION_PREPARED_QUEUE_OFFSET))
        if original is None:
            return False
        return (
            ops.pass_over(original)
            or original in ops.ended_earlier
            or (queue_id, original) in self._ended_behind
            or self._half_messages.is_ended(queue_id, original)
        )

    def _put_back(self, record: Record, properties: dict[str, str]) -> Record | None:
        """Store the message again at the end of the queue, without the user's flag and the reconsume times, as in the
        official broker. `None` if the store refuses it."""
        state = self._state
        message = copy_of(record, HALF_TOPIC, record.queue_id, changes_of(properties))
        message.flag = message.reconsume_times = 0
        result = state.store.append(message)
        if result.status is not PutStatus.PUT_OK:
            _log.error("cannot put back the half message at %d: %s", record.queue_offset, result.status.name)
            return None
        if state.config.is_5:
            state.statistics.count_put(HALF_TOPIC, 1, result.size)
        if state.clock.is_virtual:
            self._sent_ms[record.queue_id, result.queue_offset] = self._sent_at_ms(record)
        return msgspec.structs.replace(record, queue_offset=result.queue_offset, position=result.position)

    def _send_question(self, half: Record, properties: dict[str, str]) -> None:
        """Send 39 to one producer of the group, with the message in the form that a commit gives it."""
        state = self._state
        group = properties.get(names.PGROUP, "")
        connection = self._producers.available_connection(group)
        if connection is None:
            if self._said.first(group):
                _log.warning("no producer of %.80s is connected: its transactions are checked later", group)
            return
        unique_id = properties.get(names.UNIQ_KEY)
        is_5 = state.config.is_5
        question = CheckTransactionState(
            tran_state_table_offset=half.queue_offset,
            commit_log_offset=half.position,
            msg_id=unique_id,
            transaction_id=unique_id,
            offset_msg_id=encode_message_id(half.store_host, half.position),
            topic=HALF_TOPIC if is_5 else None,
            broker_name=state.config.broker_name if is_5 else None,
        )
        place = real_place(properties.get(names.REAL_TOPIC), properties.get(names.REAL_QID))
        if place is None:
            if self._said.first((group, "place")):
                _log.error(
                    "half message at %d of %.80s names no real topic and queue", half.queue_offset, group
                )
            return
        text = encode_stored(properties, BUCKETS[is_5], is_5)
        message = msgspec.structs.replace(half, topic=place[0], queue_id=place[1], properties=text)
        connection.notify(question, encode_record(message))

    def _give_up(self, record: Record, properties: dict[str, str]) -> bool:
        """Move a message from the half queue to a topic where administrators find it; 323 moves it back."""
        state = self._state
        topic = state.topics.create_for_send_back(CHECK_MAX_TIME_TOPIC, 1).name
        result = state.store.append(copy_of(record, topic, 0, changes_of(properties)))
        if result.status is not PutStatus.PUT_OK:
            _log.error("cannot give up the half message at %d: %s", record.queue_offset, result.status.name)
            return False
        self._given_up.append(record.queue_offset)
        self._half_messages.count_down(properties.get(names.REAL_TOPIC))
        return True


def _whole_number(text: str | None) -> int | None:
    """The number in a text: `None` without a text, -1 if the text is not a number."""
    if text is None:
        return None
    number = parse_number(text)
    return -1 if number is None else number
