"""Reads the messages of one pop: queue after queue, until there are enough.

For each queue: read from the offset of the group, store a checkpoint (in orderly pop: an entry of the order table),
then commit the next offset. All of it happens in one loop iteration, so queues need no lock. Messages of a retry topic
are delivered under the name of their original topic, with a receipt in POP_CK. `pop_handlers.py` checks and waits.
Mirrors `PopMessageProcessor.popMsgFromQueue`.
"""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
from pocketmq.core.properties import BUCKETS, encode_stored, read_properties
from pocketmq.protocol.bodies.revive import CheckPoint
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.pop_receipt import Receipt, message_offsets_text, retry_flag, start_offset_text
from pocketmq.protocol.message.record import decode_records, encode_record
from pocketmq.protocol.message.topics import is_retry_topic
from pocketmq.protocol.requests.pop import PopMessage
from pocketmq.protocol.wire.command import RawBody
from pocketmq.store import GetResult, GetStatus
from pocketmq.store.lookup.queue_unit import UNIT

from ..errors import Refusal
from ..filters.sql_filter import MessageFilter
from ..network.dispatch import Answer
from .popping import Popping

MAX_READS: Final = 50_000
"""Queue entries that one request looks at for their tags, in all queues of the topic."""
_SIZE: Final = struct.Struct(">i")
_PHYSICAL_OFFSET: Final = struct.Struct(">q")
_PHYSICAL_OFFSET_AT: Final = 28
_CORRECTED: Final = (GetStatus.OFFSET_TOO_SMALL, GetStatus.OFFSET_OVERFLOW_BADLY, GetStatus.OFFSET_FOUND_NULL)
_SKIPPED: Final = (
    GetStatus.NO_MATCHED_MESSAGE,
    GetStatus.OFFSET_FOUND_NULL,
    GetStatus.MESSAGE_WAS_REMOVING,
    GetStatus.NO_MATCHED_LOGIC_QUEUE,
)


ENOUGH_BYTES: Final = 4 << 20
"""With so much no further queue is read: 32 queues with a message of 4 MiB each made an answer of 128 MiB, which no
remoting client reads (16 MiB), and which held the loop for 0.3 s where it is copied for gRPC."""


class PoppedQueue(NamedTuple):
    """What a pop takes from one queue."""

    topic: str
    queue_id: int
    start_offset: int
    offsets: Sequence[int]
    times: int
    """How often each of its messages, in order, was delivered before at least; 0 in a pop without order."""


class PopAnswer(Answer):
    """`queues` lie behind each other in the body, each with the messages of its offsets."""

    queues: Sequence[PoppedQueue] = ()


class PopReading:
    """The messages of one request so far. `rest` is the number of further messages in the queues it has read."""

    def __init__(
        self,
        popping: Popping,
        request: PopMessage,
        pop_time_ms: int,
        revive_queue_id: int,
        wanted: MessageFilter,
    ) -> None:
        self._popping = popping
        self._request = request
        self._pop_time_ms = pop_time_ms
        self._revive_queue_id = revive_queue_id
        self._matches, sql = wanted
        self._matches_record = None if sql is None else sql.matches_record
        self._reads_left = MAX_READS if sql is None else sql.max_reads
        """Messages of all queues that a filter may still look at."""
        self.rest = 0
        self.is_refused = False
        """A checkpoint could not be stored: the disk is full, say. Trying again at once would not help."""
        self.count = 0
        self._bytes = 0
        self.body: list[RawBody] = []
        self.queues: list[PoppedQueue] = []
        self._order_counts: list[str] = []

    @property
    def start_offset_info(self) -> str:
        return ";".join([start_offset_text(*queue[:3]) for queue in self.queues])

    @property
    def msg_offset_info(self) -> str:
        return ";".join([message_offsets_text(*queue[:2], queue.offsets) for queue in self.queues])

    @property
    def order_count_info(self) -> str | None:
        return ";".join(self._order_counts) if self._request.order else None

    @property
    def is_full(self) -> bool:
        return self.count >= self._request.max_msg_nums or self._bytes >= ENOUGH_BYTES

    def read_topic(self, config: TopicConfig | None, first_queue: int) -> None:
        """Read all queues of a topic, from `first_queue` modulo their number on; nothing if there is no topic."""
        if config is None:
            return
        queues = config.read_queue_nums
        ascending = self._popping.config.priority_order_asc
        for step in range(queues):
            queue_id = ((queues - 1 - step if ascending else step) + first_queue) % queues
            self.read_queue(config.name, queue_id)

    def read_queue(self, topic: str, queue_id: int) -> None:
        """Read one queue, up to the number of messages that are still missing."""
        popping, request = self._popping, self._request
        group = request.consumer_group
        offset = pop_offset(popping, topic, group, queue_id, request.init_mode)
        if request.order and popping.ordered_pops.is_blocked(
            request.attempt_id, topic, group, queue_id, request.invisible_time
        ):
            return  # messages behind a blocked one do not count in `rest`
        if self.is_full or self._reads_left <= 0:
            self.rest += popping.store.max_offset(topic, queue_id) - offset
            return
        result = self._get(topic, queue_id, offset)
        if result.status in _CORRECTED:
            offset = result.next_offset
            popping.offsets.commit(topic, group, queue_id, offset)
            result = self._get(topic, queue_id, offset)
        if result.count:
            if not self._deliver(topic, queue_id, offset, result):
                self.rest += result.count
                return
        elif result.status in _SKIPPED:
            popping.offsets.commit(topic, group, queue_id, result.next_offset)
        self.rest += max(result.max_offset - result.next_offset, 0)

    def _get(self, topic: str, queue_id: int, offset: int) -> GetResult:
        result = self._popping.store.get_message(
            topic,
            queue_id,
            offset,
            self._request.max_msg_nums - self.count,
            matches=self._matches,
            matches_record=self._matches_record,
            max_reads=self._reads_left,
        )
        if result.status not in _CORRECTED:
            self._reads_left -= result.next_offset - offset
        return result

    def _deliver(self, topic: str, queue_id: int, offset: int, result: GetResult) -> bool:
        """Store the checkpoint and add the messages to the answer; False if the checkpoint cannot be stored."""
        popping, request = self._popping, self._request
        group = request.consumer_group
        offsets = self._offsets_of(topic, queue_id, offset, result)
        times = 0
        if request.order:
            counts, times = popping.ordered_pops.record_pop(
                request.attempt_id, topic, group, queue_id, self._pop_time_ms, request.invisible_time, offsets
            )
            self._order_counts += counts
            popping.offsets.commit(topic, group, queue_id, offset)
        else:
            try:
                popping.revive_log.put_checkpoint(
                    self._check_point(topic, queue_id, offset, offsets), self._revive_queue_id
                )
            except Refusal:
                self.is_refused = True
                return False
            popping.offsets.commit(topic, group, queue_id, result.next_offset)
            popping.statistics.count_pop(request.topic, group)
        popping.statistics.message_got(topic, group, result.count, result.size_bytes)
        self.queues.append(PoppedQueue(topic, queue_id, offset, offsets, times))
        self.count += result.count
        self._bytes += result.size_bytes
        if is_retry_topic(topic) and not popping.config.pop_response_return_actual_retry_topic:
            self.body += self._rename(topic, queue_id, offset, offsets, result)
        else:
            self.body += result.views
        return True

    def _check_point(self, topic: str, queue_id: int, offset: int, offsets: Sequence[int]) -> CheckPoint:
        request = self._request
        return CheckPoint(
            start_offset=offset,
            pop_time=self._pop_time_ms,
            invisible_time=request.invisible_time,
            revive_time=self._pop_time_ms + request.invisible_time,
            num=len(offsets),
            queue_id=queue_id,
            topic=topic,
            group=request.consumer_group,
            diffs=[own_offset - offset for own_offset in offsets],
            broker_name=self._popping.config.broker_name,
        )

    def _offsets_of(self, topic: str, queue_id: int, offset: int, result: GetResult) -> list[int]:
        """The queue offset of each found message. If some were filtered out, it is read from the units, because records
        of light queues contain the offset of another queue."""
        if result.count == result.next_offset - offset:
            return list(range(offset, result.next_offset))
        found = _positions(result.views)
        queue = self._popping.store.consume_queue(topic, queue_id)
        offsets: list[int] = []
        while queue is not None and offset < result.next_offset:
            units = queue.units_from(offset)
            if not units:
                offset = queue.next_file_offset(offset)
                continue
            for position, _, _ in UNIT.iter_unpack(units[: (result.next_offset - offset) * UNIT.size]):
                if position in found:
                    offsets.append(offset)
                offset += 1
        return offsets

    def _rename(
        self, topic: str, queue_id: int, offset: int, offsets: Sequence[int], result: GetResult
    ) -> list[bytes]:
        request, is_5 = self._request, self._popping.is_5
        renamed = []
        records = (record for view in result.views for record in decode_records(view))
        for record, own_offset in zip(records, offsets, strict=True):
            properties = read_properties(record.properties)
            if names.POP_CK not in properties:
                receipt = Receipt(
                    offset,
                    self._pop_time_ms,
                    request.invisible_time,
                    self._revive_queue_id,
                    retry_flag(topic),
                    self._popping.config.broker_name,
                    queue_id,
                    own_offset,
                )
                properties[names.POP_CK] = str(receipt)
            text = encode_stored(properties, BUCKETS[is_5], is_5)
            renamed.append(
                encode_record(msgspec.structs.replace(record, topic=request.topic, properties=text))
            )
        return renamed


def _positions(views: Sequence[memoryview]) -> set[int]:
    found = set()
    for view in views:
        position = 0
        while position < len(view):
            found.add(_PHYSICAL_OFFSET.unpack_from(view, position + _PHYSICAL_OFFSET_AT)[0])
            position += _SIZE.unpack_from(view, position)[0]
    return found


def pop_offset(popping: Popping, topic: str, group: str, queue_id: int, init_mode: int) -> int:
    """A group's offset in a queue; a new group gets its first offset, which is committed.

    A waiting reset is applied first, and clears the messages in flight of an orderly pop.
    """
    reset = popping.offsets.take_reset(topic, group, queue_id)
    if reset is not None:
        popping.ordered_pops.clear(topic, group, queue_id)
        popping.offsets.commit(topic, group, queue_id, reset)
        return reset
    offset = popping.offsets.query(topic, group, queue_id)
    if offset < 0:
        offset = _first_offset(popping, topic, queue_id, init_mode)
        popping.offsets.commit(topic, group, queue_id, offset)
    return offset


def _first_offset(popping: Popping, topic: str, queue_id: int, init_mode: int) -> int:
    """The oldest message in mode 0 and in a retry topic. In mode 1: 0 if the first message is in memory, else the
    newest message."""
    minimum = popping.store.min_offset(topic, queue_id)
    if init_mode == 0 or is_retry_topic(topic):
        return minimum
    if popping.config.init_pop_offset_by_check_msg_in_mem and minimum <= 0:
        is_hot = popping.store.is_hot(topic, queue_id, 0)
        if is_hot:
            return 0
    return max(popping.store.max_offset(topic, queue_id) - 1, 0)
