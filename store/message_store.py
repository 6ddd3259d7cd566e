"""The store as the broker sees it: append, read, query, and the files behind them kept in one state.

The event-loop thread owns it: every method is called there. The flusher is the only other thread and only works on the
disk. Under ASYNC_FLUSH a message is in its queue when `append` returns. Under SYNC_FLUSH, as in 5.3 and later, it is
added to its queue once it is on disk, so no consumer sees a message that a power loss could take back.
Not here: topics, groups and consumer offsets (`tables/`), response codes, waiting for messages.
Official class: DefaultMessageStore.
"""

import logging
from collections.abc import Callable

from pocketmq.core.copies import Copy, CopyForm, read_copies

from . import layout
from .admission import Admission
from .appending import Appending
from .clock import Clock
from .config import StoreConfig
from .durability.abort_marker import AbortMarker
from .durability.checkpoint import Checkpoint
from .durability.flusher import Flusher
from .durability.foreign_parts import refuse_foreign_parts
from .durability.recovery import Recovery, RecoveryReport
from .durability.store_lock import StoreLock
from .errors import DiskFailedError, StoreClosedError, StoreError, system_error
from .files import disk
from .log.commit_log import CommitLog
from .log.replicated_log import ReplicatedLog
from .lookup.consume_queue import ConsumeQueue
from .lookup.dispatch import Dispatcher, IsAwaited, OnArrivals
from .lookup.key_index import KeyIndex
from .lookup.log_dispatch import LogDispatch, StoreParts
from .lookup.queue_table import QueueTable
from .reading.message_reader import MessageReader
from .reading.positions import QueuePositions
from .reading.residency import MemoryBudget

logger = logging.getLogger(__name__)

CallSoon = Callable[[Callable[[], None]], object]

DISPATCH_AT_ONCE = 256
"""Records that a slave makes visible in one turn of the event loop: some milliseconds."""


class MessageStore:
    """Created closed; `open` recovers, `close` stops cleanly. An object is opened once.

    `on_arrivals` is called for messages that became visible in their queue. `is_awaited` is asked before, once for the
    messages that one append adds to a queue, whether to call it at all. `call_soon` runs a function in the owning
    thread (an event loop's call_soon_threadsafe): SYNC_FLUSH needs it, because there the flusher decides when messages
    become visible; without it the owner calls `dispatch_flushed` itself.
    """

    stops_cleanly = True
    """False once `close` has failed."""
    _has_loaded = False
    on_flushed: Callable[[], None] | None = None
    """Called in the owner's thread under SYNC_FLUSH, after each pass that forced the log or failed to."""
    on_copied_flushed: Callable[[], None] | None = None
    """The same on a slave, which then calls `dispatch_copied`."""

    def __init__(
        self,
        config: StoreConfig,
        clock: Clock,
        *,
        on_arrivals: OnArrivals | None = None,
        is_awaited: IsAwaited | None = None,
        call_soon: CallSoon | None = None,
        flush_in_background: bool = True,
    ) -> None:
        config.check()
        self.config = config
        self.clock = clock
        self.recovery_report: RecoveryReport | None = None
        self._call_soon = call_soon
        self._flush_in_background = flush_in_background
        self._on_arrivals = on_arrivals
        self._waits_for_flush = config.flush_disk_type == "SYNC_FLUSH"
        self.log = CommitLog(config)
        self._queues = QueueTable(config)
        self._topics = self._queues.topics
        self._index = KeyIndex(config, clock)
        self._dispatcher = Dispatcher(config, self.log, self._queues, self._index, is_awaited)
        self._log_dispatch = LogDispatch(config, self.log, self._queues, self._index, self._dispatcher)
        self.parts = StoreParts(self.log, self._queues, self._index, self._dispatcher, self._log_dispatch)
        """What recovery, appends and the flusher share, and what a test companion goes back with."""
        self.admission = Admission(config, clock)
        self._appending = appending = Appending(config, clock, self.parts, self.admission)
        self.append, self.append_all = appending.append, appending.append_all
        self.head, self.pack_message = appending.head, appending.pack_message
        self.after_append = appending.after_append
        self.statistics = appending.statistics
        budget = MemoryBudget(config)
        self.reader = MessageReader(config, self.log, self._queues, self._index, budget)
        self.get_message = self.reader.get_message
        self.query = self.reader.query
        positions = QueuePositions(config, self.log, self._queues, budget)
        self.max_offset = positions.max_offset
        self.min_offset = positions.min_offset
        self.queue_unit = positions.queue_unit
        self.store_time = positions.store_time
        self.earliest_store_time = positions.earliest_store_time
        self.earliest_log_time = positions.earliest_log_time
        self.search_offset = positions.search_offset
        self.is_hot = positions.is_hot
        self.hotness = positions.hotness
        self.replication = ReplicatedLog(self.log)
        self.on_close: list[Callable[[], None]] = []
        """Called once, before the files are closed."""
        self._lock = StoreLock(config.root)
        self._abort = AbortMarker(config.root)
        self._flusher: Flusher | None = None

    # Opening and closing

    def open(self) -> None:
        """Lock, load, recover, start the flusher. Raises StoreError with one line that says what to do.

        On failure nothing is left locked or running. Once it has begun to load files, another try needs a new object:
        raises StoreClosedError.
        """
        if self._has_loaded:
            raise StoreClosedError(
                f"store {self.config.root} was opened before: make a new MessageStore for it"
            )
        refuse_foreign_parts(self.config.root)
        try:
            disk.make_directory(self.config.root)
        except OSError as error:
            raise system_error("make", self.config.root, error) from error
        self._lock.acquire()
        try:
            clean = not self._abort.exists()
            self._has_loaded = True
            checkpoint = Checkpoint.open(self.config.root / layout.CHECKPOINT)
            self.log.files.load(may_lack_files=False)
            self._queues.load()
            self.recovery_report = Recovery(self.config, self.parts, checkpoint).run(
                clean=clean,
                intact=clean or self._abort.has_only_process_died(),
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
            self.config, self.clock, self.parts, checkpoint, self._after_log_flush, self._record_disk_failure
        )
        self._dispatcher.on_arrivals = self._on_arrivals
        if self._waits_for_flush:
            self.after_append.append(self._flusher.wake)
        if self._flush_in_background:
            self._flusher.start()
        self.admission.open()

    def close(self) -> None:
        """Force everything to disk and stop cleanly.

        If that fails, `stops_cleanly` is false, `abort` stays and the next open recovers.
        """
        self._end(is_clean=True)

    def abandon(self) -> None:
        """End as a killed process does: the files stay as they are, and the next `open` recovers. For tests."""
        self._end(is_clean=False)

    def _end(self, *, is_clean: bool) -> None:
        if self._flusher is None:
            return
        self.admission.close()
        while self.on_close:
            self.on_close.pop()()
        try:
            self._flusher.stop()
            if is_clean:
                self.log.files.drop_prepared()
                self._log_dispatch.run(self.log.end)
                self._flusher.flush_queues()
                self._abort.remove()
        except (OSError, StoreError) as error:
            self.stops_cleanly = False
            logger.error(
                "store %s did not stop cleanly, the next start recovers it: %s", self.config.root, error
            )
        finally:
            self._flusher = None
            self._lock.release()

    def _after_log_flush(self) -> None:
        """In the flusher's thread: let the event loop dispatch records that are on disk now, or had no room before."""
        if self._call_soon is not None and (self._waits_for_flush or not self._appending.dispatches_at_once):
            self._call_soon(self.dispatch_flushed)

    def _record_disk_failure(self, error: DiskFailedError) -> None:
        """In the flusher's thread."""
        self.admission.record_disk_failure(error)
        self._abort.mark_unclean()
        if self._call_soon is not None and self._waits_for_flush:
            self._call_soon(self.dispatch_flushed)

    def dispatch_flushed(self) -> None:
        """Make records visible that are on disk; under ASYNC_FLUSH only those that found no room in a queue before.

        Then call `on_flushed` under SYNC_FLUSH.
        """
        if self.on_copied_flushed is not None:
            self.on_copied_flushed()
        elif self._flusher is not None and not self._appending.dispatches_at_once:
            self._appending.dispatch_visible()
        if self.on_flushed is not None and self._waits_for_flush:
            self.on_flushed()

    @property
    def _open_flusher(self) -> Flusher:
        if self._flusher is None:
            raise StoreClosedError(f"store {self.config.root} is not open")
        return self._flusher

    def force_log(self, position: int) -> None:
        """Return once the log is on disk up to `position`; any thread but the flusher's. Raises StoreError, OSError."""
        self._open_flusher.force_log(position)

    def flush_pass(self) -> None:
        """Run one pass of the flusher in this thread, for an owner without `flush_in_background`."""
        self._open_flusher.run_pass()

    # Reading: `get_message` and `query` are methods of the reader

    def read_record(self, position: int, size: int | None = None) -> memoryview | None:
        """The whole record at a log position; None without one. With a known `size` the head is not read."""
        return self.log.read_record(position) if size is None else self.log.read(position, size)

    def read_copies(self, positions: list[int], *form: *CopyForm) -> list[Copy | None]:
        """The records at log positions, for messages that are stored anew: `core.copies.read_copies`. None also for one
        that does not lie in the file of the first."""
        file = self.log.files.file_at(positions[0])
        if file is None or file.base < self.log.hidden_before:
            return [None] * len(positions)
        return read_copies(file.view[: file.written], file.base, positions, *form)

    def consume_queue(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        return self._queues.get(topic, queue_id)

    def topics_with_queues(self) -> list[str]:
        """Topics that have queues, known to the topic table or not."""
        return list(self._topics)

    def queues_of(self, topic: str) -> list[ConsumeQueue]:
        """The queues of a topic that have ever held a message."""
        return list(self._topics.get(topic, {}).values())

    # Copying, at a slave

    def append_copied(self, position: int, data: memoryview) -> None:
        """Append a part of the master's log; see `ReplicatedLog.append`. Raises DiskFailedError once the disk has
        refused to force earlier bytes."""
        if self.admission.disk_failure is not None:
            raise DiskFailedError(self.admission.disk_failure)
        was_empty = not self.log.files
        self.replication.append(position, data)
        if was_empty:
            self._dispatcher.position = position
        if self._waits_for_flush and self._flusher is not None:
            self._flusher.wake()

    def dispatch_copied(self) -> bool:
        """Make the next complete records visible, in 5.x with SYNC_FLUSH those on this disk; True if more are left for
        another call.

        Raises StoreError if a queue or the index cannot be written; the next call continues there.
        """
        more = self._log_dispatch.run(self._appending.visible_limit, DISPATCH_AT_ONCE)
        if self._dispatcher.newest_timestamp:
            self.log.newest_store_timestamp = self._dispatcher.newest_timestamp
        return more

    # Deleting

    def delete_topic_queues(self, topic: str) -> None:
        """Delete the queues of a topic; its records stay in the log until that part is deleted."""
        self._appending.forget_deferred()
        self._queues.delete_topic(topic)

    def delete_expired_queues(self, is_kept: Callable[[str], bool]) -> None:
        """Delete queues all of whose messages have left the log, unless `is_kept(topic)`."""
        self._queues.delete_expired(self.log.start, is_kept)

    def delete_oldest_log_file(self) -> bool:
        """Delete the oldest log file, and queue files and index files that only it needed; moves the min offsets.

        False if only the file being written to is left, which is never deleted. Views of the deleted file that are
        still held stay readable.
        """
        files = self.log.files
        if len(files) <= 1 or self._dispatcher.position < files[1].base:
            return False  # records that are not dispatched yet must stay
        memory = self.log.files.delete_first_keeping_map()
        if memory is not None and self._flusher is not None:
            self._flusher.release_later(memory)
        self._queues.delete_files_before(self.log.start)
        self._index.delete_files_before(self.log.start)
        return True

    # Numbers for runtime information

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
    def dispatch_behind_bytes(self) -> int:
        """Bytes of log that are not visible in queues yet."""
        return max(self.log.end - self._dispatcher.position, 0)
