"""The one thread of the store: forces files to disk, then calls the callbacks that wait for it.

It forces the log every 500 ms when 4 pages wait (all of it every 10 s), the queues every second when 2 pages wait (64
of them; a second later the next ones; all of them, and the index, every minute), the checkpoint every second; under
SYNC_FLUSH, and for threads in `force_log`, the log at once. Nothing is written here but the checkpoint: the event-loop
thread writes through the maps, this thread calls fdatasync, which releases the interpreter lock while it waits for the
disk. The next log file is made here too, when the last is half full. `on_progress` is called in this thread.

A failed fsync is never repeated: the system has marked the pages as clean, so a second call would succeed and the data
be lost. `force_log` raises then, and the store accepts no more messages (`on_disk_failure`).
Official classes: FlushRealTimeService, GroupCommitService, FlushConsumeQueueService.
"""

import logging
import mmap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue

from ..clock import Clock
from ..config import StoreConfig
from ..errors import DiskFailedError, StoreError
from ..lookup.log_dispatch import StoreParts
from .checkpoint import Checkpoint

logger = logging.getLogger(__name__)

_CHECKPOINT_INTERVAL_MS = 1000
_LONGEST_SLEEP_SECONDS = 0.5
_QUEUES_FORCED_IN_A_PASS = 64
"""A topic of 1024 queues that gets 200,000 messages a second would have 500 queues forced each second, a tenth of a
core. The checkpoint does not rely on what is forced between two thorough passes: it spreads the work of the disk, and
fewer forces of more pages do so, too."""
_QUEUES_IN_A_TURN = 512
_TURN_SECONDS = 0.0001
"""A thread that waits for the interpreter lock gets it only after 5 ms, and walking the queues of 10,000 topics takes
longer than messages should wait: a short sleep after every _QUEUES_IN_A_TURN queues lets the event loop run."""


class Flusher:
    """Owner: its own thread, in `run_pass`; the event loop calls `start`, `stop`, `wake`."""

    def __init__(
        self,
        config: StoreConfig,
        clock: Clock,
        parts: StoreParts,
        checkpoint: Checkpoint,
        on_progress: Callable[[], None],
        on_disk_failure: Callable[[DiskFailedError], None],
    ) -> None:
        self._config = config
        self._clock = clock
        self._log, self._queues, self._index, self._dispatcher, _ = parts
        self._checkpoint = checkpoint
        self._on_progress = on_progress
        self._on_disk_failure = on_disk_failure
        self.disk_failure: DiskFailedError | None = None
        """Set once the disk has refused to force something: after that nothing is forced and no mark moves."""
        self._queues_passed = 0
        """Queues at which the last pass had looked when it had forced as many as it may."""
        self._sync = config.flush_disk_type == "SYNC_FLUSH"
        self._condition = threading.Condition()
        self._wanted = False
        self._stopping = False
        self._waiters: list[tuple[int, SimpleQueue[bool]]] = []
        """Log positions that threads wait for in `force_log`, and where each gets its answer."""
        self._thread: threading.Thread | None = None
        self._to_release: list[mmap.mmap] = []
        now_ms = clock.monotonic_ms()
        self._next_log_ms = now_ms + config.flush_interval_commit_log
        self._next_log_thorough_ms = now_ms + config.flush_commit_log_thorough_interval
        self._next_queues_ms = now_ms + config.flush_interval_consume_queue
        self._next_queues_thorough_ms = now_ms + config.flush_consume_queue_thorough_interval
        self._next_checkpoint_ms = now_ms + _CHECKPOINT_INTERVAL_MS
        self.failures = 0
        """Passes that the system answered with an error."""

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="pocketmq-flusher", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, force the log and answer all that wait.

        Raises OSError or DiskFailedError if the disk refuses, or has refused before.
        """
        with self._condition:
            self._stopping = True
            self._condition.notify()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        try:
            with self._noting_failure():
                self._flush_log(least_pages=0)
        finally:
            self._log.files.close_forced()
            self._answer(self._take_waiters())
            self._to_release.clear()

    def flush_queues(self) -> None:
        """After `stop`: force queues, index and checkpoint. Raises OSError or DiskFailedError."""
        with self._noting_failure():
            self._flush_queues(everything=True)

    def wake(self) -> None:
        """Flush the log soon."""
        if not self._wanted:
            with self._condition:
                self._wanted = True
                self._condition.notify()

    def release_later(self, memory: mmap.mmap) -> None:
        """Drop the map of a deleted file in a later pass, one a pass: freeing a large file takes long."""
        self._to_release.append(memory)

    def force_log(self, position: int) -> None:
        """Return once the log is on disk up to `position`; any thread but the flusher's.

        Raises StoreError, OSError.
        """
        if position <= self._log.files.flushed:
            return
        if self._thread is None:
            with self._noting_failure():
                self._flush_log(least_pages=0)
            return
        answer: SimpleQueue[bool] = SimpleQueue()
        with self._condition:
            if self._stopping:
                answer.put(False)
            else:
                self._waiters.append((position, answer))
                self._wanted = True
                self._condition.notify()
        if not answer.get():
            raise self.disk_failure or StoreError(f"the log was not forced up to {position}")

    def _run(self) -> None:
        while True:
            with self._condition:
                if not self._wanted and not self._stopping:
                    self._condition.wait(self._sleep_seconds())
                if self._stopping:
                    return
            try:
                self.run_pass()
            except DiskFailedError:
                with self._condition:
                    if not self._stopping and not self._waiters:
                        self._condition.wait(_LONGEST_SLEEP_SECONDS)
            except Exception:
                self.failures += 1
                logger.exception("the flusher's pass failed; the next one tries again")
                with self._condition:
                    if not self._stopping:
                        self._condition.wait(_LONGEST_SLEEP_SECONDS)

    def _sleep_seconds(self) -> float:
        due_ms = min(self._next_log_ms, self._next_queues_ms, self._next_checkpoint_ms)
        return min(max((due_ms - self._clock.monotonic_ms()) / 1000, 0.001), _LONGEST_SLEEP_SECONDS)

    def run_pass(self) -> None:
        """Force what is due now. Raises OSError, after which the next pass may succeed, and DiskFailedError, which
        every later pass raises again. In both cases all that wait have been answered."""
        try:
            with self._noting_failure():
                self._do_what_is_due()
        except DiskFailedError:
            self._answer(self._take_waiters())
            raise

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        if self.disk_failure is not None:
            raise self.disk_failure
        try:
            yield
        except DiskFailedError as error:
            self.disk_failure = error
            self._on_disk_failure(error)
            raise

    def _do_what_is_due(self) -> None:
        now_ms = self._clock.monotonic_ms()
        self._wanted = False
        config = self._config
        if self._waiters or self._sync or now_ms >= self._next_log_ms:
            self._next_log_ms = now_ms + config.flush_interval_commit_log
            everything = bool(self._waiters) or self._sync or now_ms >= self._next_log_thorough_ms
            if everything:
                self._next_log_thorough_ms = now_ms + config.flush_commit_log_thorough_interval
            self._flush_log_and_answer(0 if everything else config.flush_commit_log_least_pages)
        if now_ms >= self._next_queues_ms:
            self._next_queues_ms = now_ms + config.flush_interval_consume_queue
            everything = now_ms >= self._next_queues_thorough_ms
            if everything:
                self._next_queues_thorough_ms = now_ms + config.flush_consume_queue_thorough_interval
            self._flush_queues(everything=everything)
        if now_ms >= self._next_checkpoint_ms:
            self._next_checkpoint_ms = now_ms + _CHECKPOINT_INTERVAL_MS
            self._checkpoint.flush()
        if self._to_release:
            self._to_release.pop()
        self._prepare_next_file()

    def _prepare_next_file(self) -> None:
        try:
            self._log.files.prepare_next()
        except StoreError as error:
            logger.debug("the next log file is not made ahead of time: %s", error)

    def _flush_log_and_answer(self, least_pages: int) -> None:
        self._wanted = (
            False  # before the log's end is read: whoever appends behind it wakes this thread again
        )
        waiters = self._take_waiters()
        try:
            self._flush_log(least_pages)
        finally:
            self._answer(waiters)
            self._on_progress()

    def _flush_log(self, least_pages: int) -> None:
        newest_timestamp = self._log.newest_store_timestamp
        flushed = self._log.files.flush(least_pages, leave_open=True)
        if flushed and least_pages == 0 and newest_timestamp:
            self._checkpoint.physic_msg_timestamp = newest_timestamp

    def _take_waiters(self) -> list[tuple[int, SimpleQueue[bool]]]:
        with self._condition:
            waiters, self._waiters = self._waiters, []
        return waiters

    def _answer(self, waiters: list[tuple[int, SimpleQueue[bool]]]) -> None:
        flushed = self._log.files.flushed
        for position, answer in waiters:
            answer.put(position <= flushed)

    def _flush_queues(self, *, everything: bool) -> None:
        """The marks are read before the files are forced, so they do not cover records of the time between. The log is
        forced first, because recovery also trusts the log before the position that the marks name."""
        timestamp, position = (
            self._dispatcher.newest_timestamp,
            self._dispatcher.newest_position,
        )
        if everything:
            self._flush_log_and_answer(least_pages=0)
        least_pages = 0 if everything else self._config.flush_consume_queue_least_pages
        passed, self._queues_passed = 0 if everything else self._queues_passed, 0
        forced = 0
        for number, queue in enumerate(self._queues.walk(), 1):
            forced += number > passed and queue.files.flush(least_pages)
            if forced >= _QUEUES_FORCED_IN_A_PASS and not everything:
                self._queues_passed = number
                return
            if not number % _QUEUES_IN_A_TURN:
                time.sleep(_TURN_SECONDS)
            if self._waiters or self._wanted:
                self._flush_log_and_answer(least_pages=0)
        if not everything:
            return
        if timestamp:
            self._checkpoint.logics_msg_timestamp = timestamp
            self._checkpoint.logics_physical_offset = position
        index_timestamp = self._index.flush()
        if index_timestamp > 0:
            self._checkpoint.index_msg_timestamp = index_timestamp
        self._checkpoint.flush()
