"""The messages of topics on running brokers as a table: pulled by a thread of their own, a few batches ahead.

The thread has an event loop and connections of its own, so a table can be read where another loop runs (a notebook) and
from any thread (DuckDB). At most `BATCHES_AHEAD` batches wait. A condition narrows the ranges of queues and offsets;
store times become offsets by a request to the brokers.
"""

import queue
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import PipelineError
from ..brokers.broker_client import BrokerClient
from ..brokers.range_reader import RangeReader
from ..brokers.read_planner import Planner
from ..planning.ranges import Range
from ..planning.topic_options import ReadBound, SourceOptions
from ..records.columns import MESSAGE_COLUMNS, arrow_schema
from .call_options import in_words_of_call
from .conditions import columns_in, possible_parts, rows_matching
from .tasks import Progress

BATCHES_AHEAD: Final = 4
PIECE: Final = 4096
"""Offsets that are tried against a condition at once."""


class TopicTable:
    """The messages that the options select, at the moment when they are planned. `progress` is called by the thread."""

    progress: Progress | None = None

    def __init__(self, options: SourceOptions) -> None:
        self.schema = arrow_schema(MESSAGE_COLUMNS)
        self._options = options

    def batches(self, names: Sequence[str], condition: Any) -> Iterator[Any]:
        """The rows that meet the condition. Errors of planning are raised by this call, not by the first `next`."""
        pull = _Pull(self._options, lambda client: self._batches(client, names, condition))
        with in_words_of_call():
            pull.wait_for_plan()
        return _Rows(pull)

    def _batches(self, client: BrokerClient, names: Sequence[str], condition: Any) -> Iterator[Any]:
        ranges = narrow(Planner(client, self._options).batch(), condition, self.schema)
        yield None  # planned
        schema = arrow_schema(MESSAGE_COLUMNS, names)
        tested = [] if condition is None else columns_in(condition, list(MESSAGE_COLUMNS)) or ["queueId"]
        of_condition = arrow_schema(MESSAGE_COLUMNS, tested)
        size, done = sum(part.size for part in ranges), 0
        for part in ranges:
            for records in RangeReader(client, part, self._options).batches():
                chosen = records
                if condition is not None:
                    few = pa.RecordBatch.from_arrays(records.columns(tested), schema=of_condition)
                    chosen = records.only(rows_matching(condition, few))
                if self.progress is not None and len(records):
                    self.progress((done + int(records.queue_offsets[-1]) + 1 - part.lo) / size)
                if len(chosen):
                    yield pa.RecordBatch.from_arrays(chosen.columns(names), schema=schema)
            done += part.size


def narrow(ranges: list[Range], condition: Any, schema: Any) -> list[Range]:
    """The parts of the ranges that may have a row that meets the condition."""
    if condition is None or not ranges:
        return ranges
    queues = possible_parts(condition, schema, [_queue_guarantee(part) for part in ranges])
    ranges = [ranges[number] for number in queues]
    if "queueOffset" not in columns_in(condition, schema.names):
        return ranges
    pieces = [
        Range(part.queue, lo, min(lo + PIECE, part.hi))
        for part in ranges
        for lo in range(part.lo, part.hi, PIECE)
    ]
    offset = pc.field("queueOffset")
    guarantees = [_queue_guarantee(piece) & (offset >= piece.lo) & (offset < piece.hi) for piece in pieces]
    joined: list[Range] = []
    for number in possible_parts(condition, schema, guarantees):
        piece = pieces[number]
        if joined and joined[-1].queue == piece.queue and joined[-1].hi == piece.lo:
            joined[-1] = Range(piece.queue, joined[-1].lo, piece.hi)
        else:
            joined.append(piece)
    return joined


def _queue_guarantee(part: Range) -> Any:
    queue_of = part.queue
    return (
        (pc.field("topic") == queue_of.topic)
        & (pc.field("brokerName") == queue_of.broker_name)
        & (pc.field("queueId") == pa.scalar(queue_of.queue_id, pa.int32()))
    )


def between_times(options: SourceOptions, since_ms: int | None, until_ms: int | None) -> SourceOptions:
    """The options with a start and an end by store time, which the brokers look up."""
    if since_ms is not None:
        start = ReadBound("timestamp", timestamp_ms=since_ms, option="since")
        options = msgspec.structs.replace(options, start=start, is_start_strict=False)
    if until_ms is not None:
        end = ReadBound("timestamp", timestamp_ms=until_ms, option="until")
        options = msgspec.structs.replace(options, end=end)
    return options


class _Rows:
    """The batches of a thread, which ends with them, or with this object, also one that was never asked for any."""

    def __init__(self, pull: "_Pull") -> None:
        self._pull = pull
        self._end = weakref.finalize(self, pull.close)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            found = self._pull.next_batch() if self._end.alive else None
        except BaseException:
            self._end()
            raise
        if found is None:
            self._end()
            raise StopIteration
        return found


class _Pull:
    """A thread that pulls, and the queue through which its batches come. Ends when its reader is closed."""

    def __init__(self, options: SourceOptions, batches: Any) -> None:
        self._options = options
        self._batches = batches
        self._ready: queue.Queue[Any] = queue.Queue(BATCHES_AHEAD)
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pocketmq-topic-table", daemon=True)
        self._thread.start()

    def wait_for_plan(self) -> None:
        """Wait for the answers of the brokers; raises the error if there is one."""
        try:
            self.next_batch()
        except BaseException:  # also Ctrl-C
            self.close()
            raise

    def next_batch(self) -> Any:
        """The next batch; None at the end. Raises the error of the thread."""
        found = self._ready.get()
        if isinstance(found, BaseException):
            raise found
        return found

    def close(self) -> None:
        """End the thread, which closes its connections."""
        self._is_closed.set()
        if threading.current_thread() is not self._thread:  # objects are removed in any thread
            self._thread.join()

    def _run(self) -> None:
        """In the thread: one entry for the plan, then the batches, and None or an error at the end."""
        last: BaseException | None = None
        try:
            with BrokerClient(self._options.namesrv_addr, self._options.access).closing() as client:
                for batch in self._batches(client):
                    self._put(True if batch is None else batch)
                    if self._is_closed.is_set():
                        return
        except PipelineError as error:
            last = error
        except Exception as error:
            last = PipelineError(f"reading a topic failed: {type(error).__name__}: {error}")
            last.__cause__ = error
        self._put(last)

    def _put(self, found: Any) -> None:
        while not self._is_closed.is_set():
            try:
                self._ready.put(found, timeout=0.1)
                return
            except queue.Full:
                continue
