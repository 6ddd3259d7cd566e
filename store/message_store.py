"""The store as the broker sees it: append, read, query, and the files behind them kept in one state.

One thread owns it, that of the event loop: every method here is called there. The flusher is the only other thread
and touches the disk alone. Under ASYNC_FLUSH a message is in its queue when `append` returns. Under SYNC_FLUSH, as
in 5.3 and later, it gets there once it is on disk, so nobody consumes what a power loss could take back.
Not here: topics, groups and consumer offsets (the tables of this package), response codes, waiting.
Official class: DefaultMessageStore.
"""

import logging
import time
from collections.abc import Callable

from pocketmq.protocol.message.flags import TRANSACTION_COMMIT, TRANSACTION_MASK
from pocketmq.protocol.message.record import store_timestamp_of

from .admission import Admission
from .clock import Clock
from .config import StoreConfig
from .durability.abort_marker import AbortMarker
from .durability.checkpoint import Checkpoint
from .durability.flusher import Flusher, OnFlushed
from .durability.foreign_parts import refuse_foreign_parts
from .durability.recovery import Recovery, RecoveryReport
from .durability.store_lock import StoreLock
from .errors import DiskFailedError, StoreClosedError, StoreError
from .log.commit_log import CommitLog, RefusedError
from .log.replicated_log import ReplicatedLog
from .lookup.consume_queue import ConsumeQueue
from .lookup.dispatch import Dispatcher, IsAwaited, OnArrival
from .lookup.key_index import KeyIndex
from .lookup.light_queues import have_room_for, number_light_queues, wants_light_queues
from .lookup.queue_table import QueueTable
from .put_statistics import PutStatistics
from .reading.message_reader import MessageReader
from .reading.residency import MemoryBudget, hotness_of, make_residency
from .reading.time_search import Boundary, search_offset
from .values import AppendResult, Hotness, NewMessage, PutStatus

logger = logging.getLogger(__name__)

CallSoon = Callable[[Callable[[], None]], object]

_MAX_QUEUE_ID = (1 << 31) - 1


class MessageStore:
    """Made closed; `open` recovers, `close` stops in order.

    `on_arrival` is told of each message that became visible in its queue; of those of a batch only if `is_awaited`
    says so, once for all. `call_soon` runs a function in the owning thread (an event loop's call_soon_threadsafe):
    SYNC_FLUSH needs it, because there the flusher decides when messages become visible; without it the owner calls
    `dispatch_flushed` itself.
    """

    def __init__(
        self,
        config: StoreConfig,
        clock: Clock,
        *,
        on_arrival: OnArrival | None = None,
        is_awaited: IsAwaited | None = None,
        call_soon: CallSoon | None = None,
        flush_in_background: bool = True,
    ) -> None:
        config.check()
        self.config = config
        self.clock = clock
        self.statistics = PutStatistics()
        self.recovery_report: RecoveryReport | None = None
        self._call_soon = call_soon
        self._flush_in_background = flush_in_background
        self.log = CommitLog(config)
        self._queues = QueueTable(config)
        self._index = KeyIndex(config, clock)
        self._budget = MemoryBudget(config)
        self._residency = make_residency(config, self.log, self._budget)
        self._dispatcher = Dispatcher(config, self.log, self._queues, self._index, is_awaited)
        self.on_append: Callable[[], None] | None = None
        """Called after each append while slaves copy the log."""
        self._on_arrival = on_arrival
        self.reader = MessageReader(config, self.log, self._queues, self._index, self._budget)
        self.get_message = self.reader.get_message
        self.query = self.reader.query
        self._topics = self._queues.topics
        self._now_ms = clock.now_ms
        self._lock = StoreLock(config.root)
        self._abort = AbortMarker(config.root)
        self._flusher: Flusher | None = None
        self.admission = Admission(config, clock)
        self.replication = ReplicatedLog(self.log, self._dispatcher, self.admission)
        self._dispatch_waits_for_disk = (
            config.flush_disk_type == "SYNC_FLUSH" and config.emulate == 5 and not config.read_uncommitted
        )
        self._dispatch_at_once = not self._dispatch_waits_for_disk
        self._sync_flush = config.flush_disk_type == "SYNC_FLUSH"
        self._light_queues = config.enable_lmq and config.enable_multi_dispatch

    # Opening and closing

    def open(self) -> None:
        """Lock, load, recover, start the flusher. Raises StoreError with one line that says what to do.

        On failure nothing is left locked or running.
        """
        refuse_foreign_parts(self.config.root)
        try:
            self.config.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot make {self.config.root}: {error.strerror or error}") from error
        self._lock.acquire()
        try:
            clean = not self._abort.exists()
            checkpoint = Checkpoint(self.config.root / "checkpoint")
            self.log.files.load(may_lack_files=False)
            self._queues.load()
            self.recovery_report = Recovery(
                self.config, self.log, self._queues, self._index, checkpoint, self._dispatcher
            ).run(
                clean=clean,
                intact=clean or self._abort.only_process_died(),
                marks_are_ours=self._abort.is_ours(),
            )
            self._abort.create()
        except OSError as error:
            self._lock.release()
            raise StoreError(f"cannot open store {self.config.root}: {error}") from error
        except BaseException:
            self._lock.release()
            raise
        self._flusher = Flusher(
            self.config,
            self.clock,
            self.log,
            self._queues,
            self._index,
            self._dispatcher,
            checkpoint,
            self._after_log_flush,
            self._disk_failed,
        )
        self._dispatcher.on_arrival = self._on_arrival
        if self._flush_in_background:
            self._flusher.start()
        self.admission.open()

    def close(self) -> None:
        """Force everything to disk and leave in order. If that fails, `abort` stays and the next open recovers."""
        if self._flusher is None:
            return
        self.admission.close()
        try:
            self._flusher.stop()
            self.log.files.drop_prepared()
            self._dispatcher.run(self.log.end)
            self._flusher.flush_queues()
            self._abort.remove()
        except (OSError, StoreError):
            logger.exception("store %s did not stop in order; the next start recovers it", self.config.root)
        finally:
            self._flusher = None
            self._lock.release()

    def _after_log_flush(self) -> None:
        """In the flusher's thread: let the owner's thread dispatch what is on disk now, or could not be before."""
        if not self._dispatch_at_once and self._call_soon is not None:
            self._call_soon(self.dispatch_flushed)

    def _disk_failed(self, error: DiskFailedError) -> None:
        """In the flusher's thread."""
        self.admission.disk_failed(error)
        self._abort.distrust()

    def dispatch_flushed(self) -> None:
        """Make visible what has been forced to disk; under ASYNC_FLUSH only what found no room in a queue before."""
        if self._flusher is not None:
            self._catch_up()

    def _catch_up(self) -> bool:
        """Dispatch what can be; False where the disk refuses it."""
        waits = self._dispatch_waits_for_disk
        try:
            self._dispatcher.run(self.log.files.flushed if waits else self.log.end)
        except (StoreError, OSError) as error:
            self._pause(error)
            return False
        return True

    # When the disk is full: what is in the log stays; it is dispatched, and more is taken, once there is room.

    def _pause(self, error: Exception) -> None:
        self.admission.pause(error)
        self._dispatch_at_once = False

    def _takes_again(self, messages: list[NewMessage]) -> bool:
        """For a store that does not accept: is it only the disk, and is there room for these messages by now?"""
        if not self.admission.may_look_again or not self._catch_up():
            return False
        try:
            self.log.make_room(messages)
        except RefusedError as error:
            if error.status is PutStatus.SERVICE_NOT_AVAILABLE:
                self._pause(error)
                return False
        self._dispatch_at_once = not self._dispatch_waits_for_disk
        return self.admission.resume()

    # Writing

    def append(self, message: NewMessage) -> AppendResult:
        """Store one message. Never raises for a message: the status says what was wrong with it."""
        if not self.admission.accepting and not self._takes_again([message]):
            return self._refused(PutStatus.SERVICE_NOT_AVAILABLE)
        return self._append(message)

    def _append(self, message: NewMessage) -> AppendResult:
        started_ns = time.perf_counter_ns()
        sys_flag = message.sys_flag
        topic, queue_id = message.topic, message.queue_id
        store_timestamp = self._now_ms()
        try:
            queue = self._topics[topic][queue_id]
        except KeyError:
            if (created := self._new_queue(topic, queue_id)) is None:
                return self._refused(PutStatus.MESSAGE_ILLEGAL)
            queue = created
        light_queues = None
        if self._light_queues and wants_light_queues(topic, message.property_map):
            light_queues = number_light_queues(message, self._queues)
            if not have_room_for(light_queues, self._topics, self.config.max_lmq_consume_queue_num):
                return self._refused(PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED)
        # Prepared and rollback records are in no queue and take no number.
        transaction = sys_flag & TRANSACTION_MASK
        in_queue = transaction == 0 or transaction == TRANSACTION_COMMIT
        queue_offset = queue.next_offset if in_queue else 0
        try:
            position, size = self.log.append(message, queue_offset, store_timestamp)
        except RefusedError as error:
            return self._refused_by_log(error, topic)
        if in_queue:
            queue.next_offset = queue_offset + 1
            if light_queues:
                for name in light_queues:
                    self._queues.get_or_create(name, 0).next_offset += 1
        if self._dispatch_at_once:
            try:
                self._dispatcher.dispatch(
                    queue if in_queue else None,
                    topic,
                    queue_id,
                    message.property_map,
                    position,
                    size,
                    queue_offset,
                    store_timestamp,
                    sys_flag,
                )
            except (StoreError, OSError) as error:
                # Safe in the log, so it counts as stored, but nobody can find it yet.
                self._pause(error)
        self._appended(1, size)
        elapsed_ns = time.perf_counter_ns() - started_ns
        if elapsed_ns >= 1_000_000:
            self.statistics.record_slow(elapsed_ns // 1_000_000)
        return AppendResult(PutStatus.PUT_OK, position, size, queue_offset, store_timestamp)

    def append_batch(self, messages: list[NewMessage]) -> list[AppendResult]:
        """Store messages that differ in body, properties and flag alone, no halves, back to back, or none of them."""
        if not messages:
            return []
        if not self.admission.accepting and not self._takes_again(messages):
            return [self._refused(PutStatus.SERVICE_NOT_AVAILABLE) for _ in messages]
        try:
            sizes = self.log.make_room(messages)
        except RefusedError as error:
            return [self._refused_by_log(error, message.topic) for message in messages]
        queue = self._queues.get(messages[0].topic, messages[0].queue_id)
        if queue is None or self._light_queues or self.config.enabled_append_prop_crc:
            return [self._append(message) for message in messages]
        results = self.log.append_batch(messages, sizes, queue.next_offset, self._now_ms())
        queue.next_offset += len(results)
        if self._dispatch_at_once:
            try:
                self._dispatcher.dispatch_batch(queue, messages, results)
            except (StoreError, OSError) as error:
                self._pause(error)
        self._appended(len(results), sum(sizes))
        return results

    def _appended(self, messages: int, size_bytes: int) -> None:
        if self._sync_flush and self._flusher is not None:
            self._flusher.wake()
        if self.on_append is not None:
            self.on_append()
        self.statistics.messages += messages
        self.statistics.bytes += size_bytes

    def _refused_by_log(self, error: RefusedError, topic: str) -> AppendResult:
        if error.status is PutStatus.SERVICE_NOT_AVAILABLE:
            self._pause(error)
        else:
            logger.warning("message for %s refused: %s", topic, error)
        return self._refused(error.status)

    def _new_queue(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        try:
            return self._queues.get_or_create(topic, queue_id) if 0 <= queue_id <= _MAX_QUEUE_ID else None
        except ValueError:
            return None

    def _refused(self, status: PutStatus) -> AppendResult:
        self.statistics.failed += 1
        return AppendResult(status)

    def when_flushed(self, position: int, callback: OnFlushed) -> None:
        """Call back, from the flusher's thread, once the log is on disk up to `position`: True, or False when
        the disk refused. All that wait share one pass. At once, from here, if it is there already."""
        if self._flusher is None:
            raise StoreClosedError(f"store {self.config.root} is not open")
        self._flusher.when_flushed(position, callback)

    def flush_pass(self) -> None:
        """What the flusher's thread does in a loop, once, in this thread; for owners that run without it."""
        if self._flusher is None:
            raise StoreClosedError(f"store {self.config.root} is not open")
        self._flusher.run_pass()

    # Reading: by queue and by key in `get_message` and `query`, which are the reader's own

    def read_record(self, position: int, size: int | None = None) -> memoryview | None:
        """The whole record at a log position; None if there is none. `size` saves reading it from the head."""
        if size is None:
            return self.log.read_record(position)
        return self.log.read(position, size)

    def consume_queue(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        return self._queues.get(topic, queue_id)

    def topics_with_queues(self) -> list[str]:
        """Topics, known to the topic table or not, for which there are queues."""
        return list(self._topics)

    def queues_of(self, topic: str) -> list[ConsumeQueue]:
        """The queues of a topic that have ever held a message."""
        return list(self._topics.get(topic, {}).values())

    def max_offset(self, topic: str, queue_id: int) -> int:
        """Offset behind the newest visible message; 0 for an unknown queue."""
        queue = self._queues.get(topic, queue_id)
        return queue.max_offset if queue is not None else 0

    def min_offset(self, topic: str, queue_id: int) -> int:
        """Offset of the oldest message kept; 0 for an unknown queue, where official brokers say -1 in some places."""
        queue = self._queues.get(topic, queue_id)
        return queue.min_offset if queue is not None else 0

    def queue_unit(self, topic: str, queue_id: int, offset: int) -> tuple[int, int, int] | None:
        """(position, size, tags code) of a queue unit; None if there is none."""
        queue = self._queues.get(topic, queue_id)
        return queue.unit(offset) if queue is not None else None

    def store_time(self, topic: str, queue_id: int, offset: int) -> int:
        """storeTimestamp of the message at an offset, ms; -1 without one."""
        entry = self.queue_unit(topic, queue_id, offset)
        return self.log.store_timestamp(entry[0], entry[1]) if entry is not None else -1

    def earliest_store_time(self, topic: str, queue_id: int) -> int:
        """storeTimestamp of the oldest message of a queue, ms; -1 for an empty one."""
        return self.store_time(topic, queue_id, self.min_offset(topic, queue_id))

    def earliest_log_time(self) -> int:
        """storeTimestamp of the oldest record in the log, ms; -1 for an empty log."""
        record = self.log.read_record(self.log.start)
        return store_timestamp_of(record) if record is not None else -1

    def search_offset(
        self, topic: str, queue_id: int, timestamp_ms: int, boundary: Boundary = "LOWER"
    ) -> int:
        """Offset for a point in time, by the rules of the emulated line; 0 for an unknown queue."""
        if (queue := self._queues.get(topic, queue_id)) is None:
            return 0
        return search_offset(queue, self.log, timestamp_ms, boundary, self.config.emulate)

    # Hot and cold

    def is_hot(self, topic: str, queue_id: int, offset: int) -> bool | None:
        """Whether the message at an offset counts as in memory; None if the queue has no such entry."""
        entry = self.queue_unit(topic, queue_id, offset)
        return self._residency.is_hot(entry[0], entry[1]) if entry is not None else None

    def hotness(self, topic: str, queue_id: int, offset: int) -> Hotness | None:
        """The numbers behind `is_hot`."""
        entry = self.queue_unit(topic, queue_id, offset)
        return hotness_of(self._residency, self._budget, self.log, *entry[:2]) if entry else None

    # Deleting

    def delete_topic_queues(self, topic: str) -> bool:
        """Delete the queues of a topic; its records stay in the log until that part is deleted."""
        return self._queues.delete_topic(topic)

    def delete_expired_queues(self, is_kept: Callable[[str], bool]) -> int:
        """Delete queues all of whose messages have left the log, unless their topic is kept; how many went."""
        return self._queues.delete_expired(self.log.start, is_kept)

    def delete_oldest_log_file(self) -> bool:
        """Delete the oldest log file, and what only it gave a meaning: queue files, index files, min offsets.

        False if only the file being written to is left, which is never deleted. Views of the deleted file that are
        still held stay readable.
        """
        files = self.log.files
        if len(files) <= 1 or self._dispatcher.position < files[1].base:
            return False  # what no queue knows yet must not go
        memory = self.log.files.delete_first_keeping_map()
        if memory is not None and self._flusher is not None:
            self._flusher.let_go_later(memory)
        self._queues.delete_files_before(self.log.start)
        self._index.delete_files_before(self.log.start)
        return True

    # Numbers for runtime information

    @property
    def accepting(self) -> bool:
        """Whether appends are taken at all: open, a master, and with room on disk."""
        return self.admission.accepting

    @property
    def log_start(self) -> int:
        return self.log.start

    @property
    def log_end(self) -> int:
        return self.log.end

    @property
    def flushed_position(self) -> int:
        return self.log.files.flushed

    @property
    def newest_dispatched(self) -> tuple[int, int]:
        """Position and size of the record dispatched last: inside `on_arrival`, the one it is told of."""
        position = self._dispatcher.newest_position
        return position, self._dispatcher.position - position

    @property
    def dispatch_behind_bytes(self) -> int:
        """Bytes of log that are not visible in queues yet."""
        return max(self.log.end - self._dispatcher.position, 0)
