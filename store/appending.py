"""Appending: messages become records in the log and are dispatched, or are refused with the official status.

One message is a batch of one. Under ASYNC_FLUSH dispatch follows at once; under SYNC_FLUSH, as in 5.3 and later, once
the disk has the records (`dispatch_visible`). When the disk is full, the records in the log stay; they are dispatched,
and more messages are accepted, once there is room. Official class: the put side of DefaultMessageStore. Owner: the
event-loop thread.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable

from pocketmq.core.properties import BUCKETS, stored_text
from pocketmq.core.records import Message, Packed, Stop
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.batch import BatchElement, decode_batch, encode_batch
from pocketmq.protocol.message.record import MAX_PROPERTIES_BYTES

from .admission import Admission
from .clock import Clock
from .config import StoreConfig
from .errors import StoreError
from .log.record_heads import record_heads
from .lookup.deferred_dispatch import DeferredDispatch
from .lookup.light_queues import have_room_for, number_light_queues
from .lookup.log_dispatch import StoreParts
from .lookup.queue_table import can_name_queues
from .put_statistics import PutStatistics
from .put_values import AppendResult, NewMessage, Placed, PutStatus, RefusedError

logger = logging.getLogger(__name__)

_MAX_QUEUE_ID = (1 << 31) - 1
_MOST_TRIES = 3
"""A message may lack its queue, and room in the log."""


class Appending:
    """The write half of the store. Counts appends, for runtime information."""

    def __init__(self, config: StoreConfig, clock: Clock, parts: StoreParts, admission: Admission) -> None:
        self._config = config
        self._now_ms = clock.now_ms
        self._log, self._queues, index, dispatcher, self._log_dispatch = parts
        self._topics = self._queues.topics
        self.head = record_heads(
            index.key_starts,
            dispatcher.delays_ms,
            may_write_v2=config.auto_message_version_on_topic_len,
        )
        self._dispatcher = dispatcher
        self._admission = admission
        self._has_light_queues = config.has_light_queues
        self._has_crc = config.enabled_append_prop_crc
        self._is_5 = config.emulate == 5
        self._waits_for_disk = (
            config.flush_disk_type == "SYNC_FLUSH" and config.emulate == 5 and not config.read_uncommitted
        )
        self.dispatches_at_once = not self._waits_for_disk
        self._deferred = DeferredDispatch(dispatcher)
        self.forget_deferred = self._deferred.clear
        """What waits for the disk is read from the log then: its queues are being deleted."""
        self.statistics = PutStatistics()
        self.after_append: list[Callable[[], None]] = []
        """Called after each append, in this order: to wake the flusher, to copy to slaves."""

    def pack_message(self, message: NewMessage) -> Message:
        """The message as `append_all` wants it. Raises RefusedError for a topic or host that no record can hold."""
        head = self.head(
            message.topic,
            message.flag,
            message.sys_flag,
            message.born_host,
            message.store_host,
            message.reconsume_times,
        )
        return (
            head,
            message.queue_id,
            message.body,
            bytes(message.properties)
            if message.changes is None
            else stored_text(message.properties, message.changes, BUCKETS[self._is_5], self._is_5),
            message.born_timestamp,
            message.prepared_transaction_offset,
            None,
        )

    def append(self, message: NewMessage) -> AppendResult:
        """Store one message. Never raises for a message: the status says what was wrong with it."""
        try:
            placed = self.append_all([self.pack_message(message)])
        except RefusedError as error:
            self.statistics.failed += 1
            return AppendResult(self._handle_refusal(message.topic, error))
        if placed.refusal is not None:
            return AppendResult(placed.refusal)
        return AppendResult(
            PutStatus.PUT_OK, placed.positions[0], placed.sizes[0], placed.runs[0][1], placed.store_timestamp
        )

    def append_all(self, messages: list[Message]) -> Placed:
        """Store messages in their order, up to the first that is refused: `Placed.refusal` says why. The caller may
        pass those behind it in another call.

        A batch is stored whole or not at all. Never raises for a message.
        """
        started_ns, now_ms = time.perf_counter_ns(), self._now_ms()
        if not self._admission.accepting and not self._has_room_again(messages[0]):
            self.statistics.failed += 1
            return _join_parts([], now_ms, PutStatus.SERVICE_NOT_AVAILABLE)
        placed = (
            self._append_with_light_queues(messages, now_ms)
            if self._has_light_queues
            else self._append(messages, now_ms)
        )
        if placed.refusal is not None:
            self.statistics.failed += 1
        if placed.runs:
            for action in self.after_append:
                action()
        self.statistics.count(len(placed.sizes), sum(placed.sizes), started_ns)
        return placed

    def _append(self, messages: list[Message], now_ms: int) -> Placed:
        """Store messages in their order, up to the first that is refused."""
        parts: list[Placed] = []
        refusal = None
        while messages:
            try:
                placed = self._append_some(messages, now_ms)
            except RefusedError as error:
                refusal = self._handle_refusal(messages[0][0].topic, error)
                break
            done = len(placed.runs)
            if done == len(messages) and not parts:
                return placed
            parts.append(placed)
            messages = messages[done:]
        return _join_parts(parts, now_ms, refusal)

    def _append_with_light_queues(self, messages: list[Message], now_ms: int) -> Placed:
        numbered, light, refusal = self._number_light_queues(messages)
        # Dispatch moves them on as well, where it does not wait for the disk.
        offsets = {name: self._light_offset(name) for counts in light for name in counts}
        placed = self._append(numbered, now_ms)
        if placed.refusal is None:
            placed.refusal = refusal
        for name, count in sum(light[: len(placed.runs)], Counter()).items():
            self._queues.get_or_create(name, 0).next_offset = offsets[name] + count
        return placed

    def _append_some(self, messages: list[Message], now_ms: int) -> Placed:
        """Store as many messages as the log's file has room for, at least one. Raises RefusedError for the first."""
        packed = self._log.append(messages, self._topics, now_ms)
        if not packed[1]:
            packed = self._append_prepared(messages, packed[0], now_ms)
        _, runs, positions, sizes, entries, keys, texts, added = packed
        placed = Placed(
            runs, positions, sizes, positions[-1] + sizes[-1], now_ms, entries, keys, texts, added
        )
        if self.dispatches_at_once:
            try:
                self._dispatcher.dispatch(placed)
            except (StoreError, OSError) as error:
                self._pause(error)  # safe in the log, so it counts as stored, but no reader can find it yet
        else:
            self._deferred.defer(placed)
        return placed

    def _append_prepared(self, messages: list[Message], stop: int, now_ms: int) -> Packed:
        """Prepare the first message and append again."""
        for _ in range(_MOST_TRIES):
            self._prepare(messages[0], stop)
            packed = self._log.append(messages, self._topics, now_ms)
            if packed[1]:
                return packed
            stop = packed[0]
        raise RefusedError(PutStatus.MESSAGE_ILLEGAL, f"its records are not packed: {Stop(stop).name}")

    def _prepare(self, message: Message, stop: int) -> None:
        """Make the room or the queue that a message lacks. Raises RefusedError, also if no record can hold it."""
        head, queue_id, body, text, *_ = message
        match stop:
            case Stop.NO_ROOM:
                self._log.make_room(message)
            case Stop.NO_QUEUE:
                self._make_queue(head.topic, queue_id)
            case Stop.BODY_TOO_LONG:
                limit = self._config.max_message_size
                raise RefusedError(
                    PutStatus.MESSAGE_ILLEGAL, f"body of {len(body)} bytes; the limit is {limit}"
                )
            case Stop.TEXT_TOO_LONG:
                size = 0 if text is None else len(text)
                raise RefusedError(
                    PutStatus.PROPERTIES_SIZE_EXCEEDED,
                    f"properties of {size} bytes; the limit is {MAX_PROPERTIES_BYTES}",
                )
            case Stop.UNREADABLE:
                raise RefusedError(
                    PutStatus.MESSAGE_ILLEGAL, "a batch without messages, or one that is cut off or delayed"
                )

    def _number_light_queues(
        self, messages: list[Message]
    ) -> tuple[list[Message], list[Counter[str]], PutStatus | None]:
        """Messages whose properties have the numbers of their light queues' entries, up to one that would need too
        many queues; how many entries each of them adds to each light queue; and why one is refused."""
        numbered: list[Message] = []
        light: list[Counter[str]] = []
        refusal = None
        ahead: Counter[str] = Counter()
        for head, queue_id, body, text, born_timestamp, prepared_offset, code in messages:
            counts: Counter[str] = Counter()
            try:
                elements = [BatchElement(0, body, text)] if text is not None else decode_batch(body)
            except BodyError:
                elements = []  # the log refuses it
            for number, element in enumerate(elements):
                new_text, names = number_light_queues(
                    head.topic, bytes(element.properties), self._queues, ahead + counts
                )
                counts.update(names)
                elements[number] = BatchElement(element.flag, element.body, new_text)
            ahead += counts
            if not have_room_for(ahead, self._topics, self._config.max_lmq_consume_queue_num):
                refusal = PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED
                break
            if text is not None:
                text = bytes(elements[0].properties)
            elif elements:
                try:
                    body = encode_batch(elements)
                except BodyError:
                    refusal = PutStatus.PROPERTIES_SIZE_EXCEEDED
                    break
            light.append(counts)
            numbered.append((head, queue_id, body, text, born_timestamp, prepared_offset, code))
        return numbered, light, refusal

    def _light_offset(self, name: str) -> int:
        queue = self._queues.get(name, 0)
        return 0 if queue is None else queue.next_offset

    def _make_queue(self, topic: str, queue_id: int) -> None:
        if not 0 <= queue_id <= _MAX_QUEUE_ID or not can_name_queues(topic):
            raise RefusedError(PutStatus.MESSAGE_ILLEGAL, f"there is no queue {queue_id} of {topic!r}")
        self._queues.get_or_create(topic, queue_id)

    def _handle_refusal(self, topic: str, error: RefusedError) -> PutStatus:
        if error.status is PutStatus.SERVICE_NOT_AVAILABLE:
            self._pause(error)
        else:
            logger.warning("message for %s refused: %s", topic, error)
        return error.status

    @property
    def visible_limit(self) -> int:
        """Log position up to which records may be visible: on disk, or under ASYNC_FLUSH and in 4.9 all."""
        return self._log.files.flushed if self._waits_for_disk else self._log.end

    def dispatch_visible(self) -> bool:
        """Dispatch the records that may be visible; False if the disk refuses a write."""
        try:
            limit = self.visible_limit
            self._deferred.run(limit)
            self._log_dispatch.run(limit)
        except (StoreError, OSError) as error:
            self._pause(error)
            return False
        return True

    def _pause(self, error: Exception) -> None:
        self._admission.pause(error)
        self.dispatches_at_once = False

    def _has_room_again(self, message: Message) -> bool:
        """For a store that refuses messages: True if only room on disk was missing and this one fits now."""
        if not self._admission.may_look_again or not self.dispatch_visible():
            return False
        try:
            self._log.make_room(message)
        except RefusedError as error:
            if error.status is PutStatus.SERVICE_NOT_AVAILABLE:
                self._pause(error)
                return False
        self.dispatches_at_once = not self._waits_for_disk
        return self._admission.resume()


def _join_parts(parts: list[Placed], store_timestamp: int, refusal: PutStatus | None = None) -> Placed:
    """What the parts of one append stored."""
    joined = Placed([], [], [], parts[-1].end if parts else 0, store_timestamp, b"", b"", [], [], refusal)
    for part in parts:
        joined.runs += part.runs
        joined.positions += part.positions
        joined.sizes += part.sizes
        joined.entries += part.entries
        joined.keys += part.keys
        joined.texts += part.texts
        joined.added += part.added
    return joined
