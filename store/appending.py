"""Appending: messages become records in the log and are dispatched, or are refused with the official status.

One message is a batch of one. Under ASYNC_FLUSH dispatch follows at once; under SYNC_FLUSH, as in 5.3 and later, once
the disk has the records (`catch_up`). When the disk is full, the records in the log stay; they are dispatched, and more
messages are accepted, once there is room. Official class: the put side of DefaultMessageStore. Owner: the event-loop
thread.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate

from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.batch import decode_batch
from pocketmq.protocol.message.flags import is_in_queue
from pocketmq.protocol.message.topics import SCHEDULE_TOPIC

from .accelerated.choice import is_native
from .admission import Admission
from .clock import Clock
from .config import StoreConfig
from .errors import StoreError
from .log.commit_log import CommitLog
from .lookup.consume_queue import ConsumeQueue
from .lookup.dispatch import Dispatcher
from .lookup.held_dispatch import HeldDispatch
from .lookup.key_index import KeyIndex
from .lookup.light_queues import have_room_for, number_light_queues, wants_light_queues
from .lookup.log_dispatch import LogDispatch
from .lookup.message_template import MessageTemplate
from .lookup.queue_table import QueueTable
from .put_statistics import SLOW_NS, PutStatistics
from .put_values import (
    AlikeBatch,
    AlikeMessage,
    AppendResult,
    ElementBatch,
    NewMessage,
    PutStatus,
    RefusedError,
    Stored,
)

logger = logging.getLogger(__name__)

_MAX_QUEUE_ID = (1 << 31) - 1


class Appending:
    """The write half of the store. Counts appends, for runtime information."""

    def __init__(
        self,
        config: StoreConfig,
        clock: Clock,
        log: CommitLog,
        queues: QueueTable,
        index: KeyIndex,
        dispatcher: Dispatcher,
        log_dispatch: LogDispatch,
        admission: Admission,
    ) -> None:
        self._config = config
        self._now_ms = clock.now_ms
        self._log = log
        self._queues = queues
        self._topics = queues.topics
        self._index = index
        self._dispatcher = dispatcher
        self._log_dispatch = log_dispatch
        self._admission = admission
        self._has_light_queues = config.has_light_queues
        self._waits_for_disk = (
            config.flush_disk_type == "SYNC_FLUSH" and config.emulate == 5 and not config.read_uncommitted
        )
        self.dispatches_at_once = not self._waits_for_disk
        self._held = HeldDispatch(dispatcher)
        self.statistics = PutStatistics()
        self.after_append: Callable[[], None] | None = None
        """Called after each append, if set."""

    def append(self, message: NewMessage) -> AppendResult:
        """Store one message. Never raises for a message: the status says what was wrong with it."""
        if not self._admission.accepting and not self._has_room_again((message,)):
            return self._refused(PutStatus.SERVICE_NOT_AVAILABLE)
        return self._append(message)

    def _append(self, message: NewMessage) -> AppendResult:
        started_ns = time.perf_counter_ns()
        try:
            queue = self._topics[message.topic][message.queue_id]
        except KeyError:
            if (created := self._new_queue(message.topic, message.queue_id)) is None:
                return self._refused(PutStatus.MESSAGE_ILLEGAL)
            queue = created
        light_units = None
        if self._has_light_queues and (light_units := self._number_light_queues((message,))) is None:
            return self._refused(PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED)
        store_timestamp = self._now_ms()
        # Prepared and rollback records are in no queue and take no number.
        in_queue = is_in_queue(message.sys_flag)
        queue_offset = queue.next_offset if in_queue else 0
        try:
            position, (size,) = self._log.append((message,), queue_offset, store_timestamp)
        except RefusedError as error:
            return self._refused_by_log(error, (message,))[0]
        if in_queue:
            queue.next_offset = queue_offset + 1
            if light_units:
                self._count_light_units(light_units)
        if self.dispatches_at_once:
            try:
                self._dispatcher.dispatch_one(
                    queue if in_queue else None, message, size, position, queue_offset, store_timestamp
                )
            except (StoreError, OSError) as error:
                self._pause(error)  # safe in the log, so it counts as stored, but no reader can find it yet
        else:
            kept = NewMessage(
                message.topic,
                message.queue_id,
                b"",
                b"",
                dict(message.property_map),  # the sender may change its own
                sys_flag=message.sys_flag,
            )
            self._held.hold(
                position,
                position + size,
                self._dispatcher.dispatch_one,
                queue if in_queue else None,
                kept,
                size,
                position,
                queue_offset,
                store_timestamp,
            )
        if self.after_append is not None:
            self.after_append()
        statistics = self.statistics  # `count`, without the call
        statistics.messages += 1
        statistics.bytes += size
        elapsed_ns = time.perf_counter_ns() - started_ns
        if elapsed_ns >= SLOW_NS:
            statistics.record_slow(elapsed_ns // SLOW_NS)
        return AppendResult(PutStatus.PUT_OK, position, size, queue_offset, store_timestamp)

    def append_batch(self, messages: Sequence[NewMessage]) -> list[AppendResult]:
        """Store a batch back to back, or none of it; one result for each message.

        Its messages may differ in body, properties and flag only; half messages are not allowed.
        """
        if not messages:
            return []
        started_ns = time.perf_counter_ns()
        if not self._admission.accepting and not self._has_room_again(messages):
            return [self._refused(PutStatus.SERVICE_NOT_AVAILABLE) for _ in messages]
        first = messages[0]
        queue = self._queues.get(first.topic, first.queue_id) or self._new_queue(first.topic, first.queue_id)
        if queue is None:
            return [self._refused(PutStatus.MESSAGE_ILLEGAL) for _ in messages]
        light_units = None
        if self._has_light_queues and (light_units := self._number_light_queues(messages)) is None:
            return [self._refused(PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED) for _ in messages]
        try:
            store_timestamp, queue_offset = self._now_ms(), queue.next_offset
            position, sizes = self._log.append(messages, queue_offset, store_timestamp)
        except RefusedError as error:
            return self._refused_by_log(error, messages)
        queue.next_offset += len(sizes)
        if light_units:
            self._count_light_units(light_units)
        if self.dispatches_at_once:
            try:
                self._dispatcher.dispatch(queue, messages, sizes, position, queue_offset, store_timestamp)
            except (StoreError, OSError) as error:
                self._pause(error)
        else:
            dispatch, end = self._dispatcher.dispatch, position + sum(sizes)
            self._held.hold(
                position, end, dispatch, queue, messages, sizes, position, queue_offset, store_timestamp
            )
        if self.after_append is not None:
            self.after_append()
        results, ok = [], PutStatus.PUT_OK
        for number, size in enumerate(sizes, queue_offset):
            results.append(AppendResult(ok, position, size, number, store_timestamp))
            position += size
        self.statistics.count(len(sizes), position - results[0].position, started_ns)
        return results

    def template(self, message: NewMessage, *, shares_text: bool = True) -> MessageTemplate | None:
        """What this message shares with others that differ in queue, body, unique id and times only; None if `append`
        does more for it than fill these in.

        Without `shares_text` they differ in the property text, too, but have its tags, KEYS if it has any, and their
        unique id at the same place. Such a message has `whole_text` in the place of its id.
        """
        if self._has_light_queues and wants_light_queues(message.topic, message.property_map):
            return None
        record = self._log.template(message, shares_text=shares_text)
        return self._dispatcher.template(message, record) if record is not None else None

    def append_alike(self, template: MessageTemplate, messages: Sequence[AlikeMessage]) -> Stored | None:
        """Store messages of one template, in any of its topic's queues, as `append` would store one after the other.

        Stops before the first message that an ordinary append must judge: it may be too large, begin a queue, have an
        id that is none, or need more room than is reserved. So `Stored` may list fewer messages than `messages`; None
        if there are none. Pass the next message to `append`, which stores or refuses it.
        """
        file = self._log.file
        of_topic = self._topics.get(template.topic)
        if file is None or of_topic is None or not self._admission.accepting:
            return None
        started_ns = time.perf_counter_ns()
        append_record, most_body_bytes = template.record.append, self._config.max_message_size
        key_hashes_of, put_in_index, code = template.key_hashes, self._index.put_new, template.tags_code
        store_timestamp = self._now_ms()
        position = end = file.base + file.written
        positions, sizes, queue_offsets = [], [], []
        held: list[tuple[ConsumeQueue, Sequence[int]]] | None = None if self.dispatches_at_once else []
        try:
            for message in messages:
                queue = of_topic.get(message[0])
                if queue is None:
                    break
                try:
                    key_hashes = key_hashes_of(message[2])
                except ValueError:
                    break
                queue_offset = queue.next_offset
                size = append_record(file, message, queue_offset, store_timestamp, most_body_bytes)
                if not size:
                    break
                end += size
                positions.append(position)
                sizes.append(size)
                queue_offsets.append(queue_offset)
                queue.next_offset = queue_offset + 1
                if held is not None:
                    held.append((queue, key_hashes))
                else:
                    queue.append(position, size, code, queue_offset)
                    if key_hashes:
                        put_in_index(key_hashes, position, store_timestamp)
                position = end
        except (StoreError, OSError) as error:
            self._pause(error)  # these messages count as stored; `catch_up` completes and announces them
        if not sizes:
            return None
        self._log.newest_store_timestamp = store_timestamp
        stored = Stored(positions, sizes, queue_offsets, end, store_timestamp)
        if held is not None:
            self._held.hold(
                positions[0], end, self._dispatcher.dispatch_alike, template, messages, held, stored
            )
        elif self.dispatches_at_once:
            self._index.write_header()
            self._dispatcher.dispatched(template, messages, stored)
        else:
            self._index.write_header()
        if self.after_append is not None:
            self.after_append()
        self.statistics.count(len(sizes), end - positions[0], started_ns)
        return stored

    def append_alike_batch(self, template: MessageTemplate, batch: AlikeBatch) -> Stored | None:
        """Store a batch of messages of one template as `append_batch` does: back to back, all of them or none.

        None: nothing was stored, and `append_batch` must judge it: a body may be too large, or the batch may begin a
        queue, or need more room than is reserved.
        """
        started_ns = time.perf_counter_ns()
        queue = self._queues.get(template.topic, batch.queue_id)
        if queue is None or not self._admission.accepting:
            return None
        hashes = template.hashes_of_all(batch.unique_ids)
        store_timestamp, position, queue_offset = self._now_ms(), self._log.end, queue.next_offset
        sizes = self._log.append_batch(template.record, batch, queue_offset, store_timestamp)
        if sizes is None:
            return None
        count = len(sizes)
        queue.next_offset += count
        positions = list(accumulate(sizes, initial=position))
        end = positions.pop()
        queue_offsets = range(queue_offset, queue_offset + count)
        stored = Stored(positions, sizes, queue_offsets, end, store_timestamp)
        if self.dispatches_at_once:
            try:
                self._dispatcher.dispatch_batch(template, queue, batch, hashes, stored)
            except (StoreError, OSError) as error:
                self._pause(error)
        else:
            batch.bodies = ()
            self._held.hold(
                position, end, self._dispatcher.dispatch_batch, template, queue, batch, hashes, stored
            )
        if self.after_append is not None:
            self.after_append()
        self.statistics.count(count, end - position, started_ns)
        return stored

    def append_elements(self, batch: ElementBatch) -> Stored | None:
        """Store the messages of a batch request as `append_batch` does: back to back, all of them or none.

        They are not taken apart, unless something waits for them. None: nothing was stored, and `append_batch` must
        judge them: one may be too large or not readable, or the batch may need more room than is left in the file.
        """
        started_ns = time.perf_counter_ns()
        topic = batch.topic
        if (
            not is_native  # without C `append_alike_batch` and `append_batch` are faster
            or not self._admission.accepting
            or self._has_light_queues
            or topic == SCHEDULE_TOPIC
            or not is_in_queue(batch.sys_flag)
        ):
            return None
        queue = self._queues.get(topic, batch.queue_id)
        if queue is None:
            try:
                decode_batch(batch.elements)  # one that cannot be read begins no queue
            except BodyError:
                return None
            queue = self._new_queue(topic, batch.queue_id)
        if queue is None:
            return None
        store_timestamp, queue_offset = self._now_ms(), queue.next_offset
        packed = self._log.append_elements(
            batch, queue_offset, store_timestamp, self._index.key_starts(topic)
        )
        if packed is None:
            return None
        positions, sizes, *_ = packed
        count, end = len(sizes), positions[-1] + sizes[-1]
        queue.next_offset += count
        queue_offsets = range(queue_offset, queue_offset + count)
        stored = Stored(positions, sizes, queue_offsets, end, store_timestamp)
        dispatch = self._dispatcher.dispatch_elements
        if self.dispatches_at_once:
            try:
                dispatch(queue, batch, packed, stored)
            except (StoreError, OSError) as error:
                self._pause(error)
        else:
            self._held.hold(positions[0], end, dispatch, queue, batch, packed, stored)
        if self.after_append is not None:
            self.after_append()
        self.statistics.count(count, end - positions[0], started_ns)
        return stored

    def _number_light_queues(self, messages: Sequence[NewMessage]) -> Counter[str] | None:
        """Write the numbers of their units into the properties of messages; returns how many units each light queue
        gets, None if these are too many queues."""
        units: Counter[str] = Counter()
        for message in messages:
            if wants_light_queues(message.topic, message.property_map):
                units.update(number_light_queues(message, self._queues, units))
        has_room = have_room_for(units, self._topics, self._config.max_lmq_consume_queue_num)
        return units if has_room else None

    def _count_light_units(self, units: Counter[str]) -> None:
        for name, count in units.items():
            self._queues.get_or_create(name, 0).next_offset += count

    def _new_queue(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        try:
            return self._queues.get_or_create(topic, queue_id) if 0 <= queue_id <= _MAX_QUEUE_ID else None
        except ValueError:
            return None

    def _refused(self, status: PutStatus) -> AppendResult:
        self.statistics.failed += 1
        return AppendResult(status)

    def _refused_by_log(self, error: RefusedError, messages: Sequence[NewMessage]) -> list[AppendResult]:
        if error.status is PutStatus.SERVICE_NOT_AVAILABLE:
            self._pause(error)
        else:
            logger.warning("message for %s refused: %s", messages[0].topic, error)
        return [self._refused(error.status) for _ in messages]

    def catch_up(self) -> bool:
        """Dispatch the records that are on disk, or under ASYNC_FLUSH all; False if the disk refuses a write."""
        files = self._log.files
        try:
            limit = files.flushed if self._waits_for_disk else self._log.end
            self._held.run(limit)
            self._log_dispatch.run(limit)
        except (StoreError, OSError) as error:
            self._pause(error)
            return False
        return True

    def forget_held(self) -> None:
        """Read what waits for the disk from the log: its queues are being deleted."""
        self._held.clear()

    def _pause(self, error: Exception) -> None:
        self._admission.pause(error)
        self.dispatches_at_once = False

    def _has_room_again(self, messages: Sequence[NewMessage]) -> bool:
        """For a store that refuses messages: True if only room on disk was missing and these messages fit now."""
        if not self._admission.may_look_again or not self.catch_up():
            return False
        try:
            self._log.make_room(messages)
        except RefusedError as error:
            if error.status is PutStatus.SERVICE_NOT_AVAILABLE:
                self._pause(error)
                return False
        self.dispatches_at_once = not self._waits_for_disk
        return self._admission.resume()
