"""The sink of `rocketmq`: data frames, batch and streaming, as messages.

    df.write.format("rocketmq").mode("append").option("topic", "Orders")...save()
    df.writeStream.format("rocketmq").option("topic", "Orders")...start()

What it promises, by option `guarantee`:

    at-least-once   a task ends only when every message is acknowledged; a task that runs again sends again
    idempotent      (default) the same, and a message that is sent again has the same UNIQ_KEY, a function of query,
                    batch, partition and row; so readers can drop doubles. It needs a plan that gives the same rows to
                    the same partition again: a shuffle without a sort before the sink may not
    transactional   tasks send half messages; the driver commits them when all tasks are done, and remembers the batch
                    as an offset of a group, so that a batch which was committed is not sent again. A driver that dies
                    while it commits leaves some messages committed: that batch is repeated, with the same UNIQ_KEYs

Rows of one queue (column queueId, or shardingKey) keep their order; delayed rows and halves travel one by one, all
others in batches of one topic. Options: `sink_options.py`; bytes: `records/batch_encoder.py`; requests:
`brokers/batch_sender.py`.
"""

import logging
import uuid
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.flags import TRANSACTION_PREPARED
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from ..brokers.batch_sender import BatchSender, Stored
from ..brokers.wire import wire_for
from ..errors import OptionError, PipelineError
from ..planning.positions import Queue
from ..records.batch_encoder import bodies_of, cut_batches, elements, property_texts, row_ids
from .sink_options import (
    AT_LEAST_ONCE,
    TRANSACTIONAL,
    SinkOptions,
    check_columns,
    read_sink_options,
)
from .transactions import end_transactions, is_written, remember_written

_log = logging.getLogger("pocketmq.pipeline")

QUERY_ID: Final = "sql.streaming.queryId"
BATCH_ID: Final = "streaming.sql.batchId"


class Written(WriterCommitMessage):
    """What one task has sent."""

    def __init__(self, rows: int, requests: int, stored: list[Stored], query_id: str) -> None:
        self.rows = rows
        self.requests = requests
        self.stored = stored
        self.query_id = query_id


def sender_for(options: SinkOptions) -> BatchSender:
    """The sender of one task."""
    return BatchSender(
        wire_for(options),
        group=options.group,
        in_flight=options.in_flight,
        timeout_ms=options.send_timeout_ms,
        retry_timeout_ms=options.retry_timeout_ms,
        retries=options.send_retries,
        rows_per_second=options.max_rows_per_second,
    )


class _Writing:
    """What batch and stream writers share: options, columns, and one task's work."""

    def __init__(self, options: dict[str, str], schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise OptionError("mode overwrite or complete: a topic can only be appended to")
        self._options = read_sink_options(options)
        check_columns([(field.name, field.dataType.simpleString()) for field in schema.fields], self._options)
        self._arrow_names = [field.name for field in schema.fields]

    def _write(self, batches: Iterator[Any], writer: str, query_id: str) -> Written:
        sender = sender_for(self._options)
        task = TaskSender(sender, self._options, writer)
        try:
            for batch in batches:
                task.send(batch)
            sender.finish()
        except BaseException:
            self._give_up(sender)
            raise
        if sender.not_yet_safe:
            _log.warning("%d requests are stored, but not yet flushed or replicated", sender.not_yet_safe)
        return Written(sender.rows, sender.requests, sender.stored, query_id)

    def _give_up(self, sender: BatchSender) -> None:
        """End the sending of a task that fails. `abort` gets the half messages of the others alone."""
        if self._options.guarantee != TRANSACTIONAL:
            sender.cancel()
            return
        patience_ms = self._options.send_timeout_ms
        sender.cancel(after_seconds=patience_ms / 1000)
        hurried = msgspec.structs.replace(self._options, retry_timeout_ms=patience_ms)
        try:
            end_transactions(hurried, sender.stored, is_commit=False)
        except PipelineError as error:  # the task's own failure is what its user must see
            _log.warning("half messages stay until the broker gives them up: %s", error)


class TaskSender:
    """Turns the record batches of one task into requests."""

    def __init__(self, sender: BatchSender, options: SinkOptions, writer: str) -> None:
        self._sender = sender
        self._options = options
        self._writer = uuid.uuid4().hex if options.guarantee == AT_LEAST_ONCE else writer
        self._row = 0

    def send(self, batch: Any) -> None:
        """All rows of one record batch."""
        ids = row_ids(self._writer, self._row, batch.num_rows)
        self._row += batch.num_rows
        if self._options.guarantee == TRANSACTIONAL:
            extra = {names.TRAN_MSG: _all(batch, "true"), names.PGROUP: _all(batch, self._options.group)}
            self._send_singly(batch, property_texts(batch, ids, extra=extra), TRANSACTION_PREPARED)
            return
        delays = _delays(batch)
        texts = property_texts(batch, ids, extra=delays)
        is_single = _is_delayed(delays, batch.num_rows)
        if is_single.any():
            some = pa.array(is_single)
            self._send_singly(batch.filter(some), texts.filter(some), 0)
            batch, texts = batch.filter(pc.invert(some)), texts.filter(pc.invert(some))
        if batch.num_rows:
            self._send_batches(batch, texts)

    def _send_batches(self, batch: Any, texts: Any) -> None:
        flags = batch.column("flag") if "flag" in batch.schema.names else None
        packed = elements(bodies_of(batch), texts, flags)
        for topic, queue, rows in self._groups(batch):
            mine = packed if rows is None else packed.take(pa.array(rows))
            sizes = np.diff(
                np.asarray(pa.Array.from_buffers(pa.int32(), len(mine) + 1, [None, mine.buffers()[1]]))
            )
            data = memoryview(mine.buffers()[2])
            edges = np.concatenate(([0], np.cumsum(sizes)))
            for first, stop in cut_batches(
                sizes.astype(np.int64), self._options.batch_rows, self._options.batch_bytes
            ):
                if stop - first == 1 and sizes[first] > self._options.batch_bytes:
                    # A batch of one is longer than its message, and might pass the broker's limit where that does not.
                    self._send_row(batch, texts, first if rows is None else int(rows[first]), topic, queue)
                    continue
                body = data[int(edges[first]) : int(edges[stop])]
                self._sender.send_batch(topic, body, stop - first, queue=queue)

    def _send_row(self, batch: Any, texts: Any, row: int, topic: str, queue: Queue | None) -> None:
        flag = batch.column("flag")[row].as_py() if "flag" in batch.schema.names else 0
        body = bodies_of(batch.slice(row, 1))[0].as_py()
        self._sender.send_one(topic, body, texts[row].as_py(), flag or 0, queue=queue)

    def _groups(self, batch: Any) -> Iterator[tuple[str, Queue | None, Any]]:
        """(topic, queue or None for any, row numbers or None for all): rows that may share a request."""
        present = set(batch.schema.names)
        if self._options.topic is not None and not present & {"queueId", "shardingKey"}:
            yield self._options.topic, None, None
            return
        keys: dict[tuple[str, Queue | None], list[int]] = {}
        for row, place in enumerate(self._places(batch)):
            keys.setdefault(place, []).append(row)
        for (topic, queue), rows in keys.items():
            yield topic, queue, np.array(rows)

    def _places(self, batch: Any) -> Iterator[tuple[str, Queue | None]]:
        """Topic and fixed queue of each row."""
        present = set(batch.schema.names)
        nothing = [None] * batch.num_rows
        topics = batch.column("topic").to_pylist() if "topic" in present else nothing
        queue_ids = batch.column("queueId").to_pylist() if "queueId" in present else nothing
        sharding = batch.column("shardingKey").to_pylist() if "shardingKey" in present else nothing
        known: dict[tuple[Any, ...], tuple[str, Queue | None]] = {}
        for key in zip(topics, queue_ids, sharding, strict=True):
            place = known.get(key)
            if place is None:
                place = known[key] = self._place(*key)
            yield place

    def _place(
        self, topic: str | None, queue_id: int | None, sharding: str | None
    ) -> tuple[str, Queue | None]:
        name = self._options.topic or topic
        if not name:
            raise OptionError("column topic: is null or empty in a row, and there is no option topic")
        if queue_id is not None:
            return name, self._sender.queue_of(name, queue_id)
        return name, None if not sharding else self._sender.queue_for(name, sharding)

    def _send_singly(self, batch: Any, texts: Any, sys_flag: int) -> None:
        flags = batch.column("flag").to_pylist() if "flag" in batch.schema.names else [0] * batch.num_rows
        rows = zip(bodies_of(batch), texts.to_pylist(), flags, self._places(batch), strict=True)
        for body, text, flag, (topic, queue) in rows:
            self._sender.send_one(topic, body.as_py(), text, flag or 0, queue=queue, sys_flag=sys_flag)


def _all(batch: Any, text: str) -> Any:
    return pa.repeat(text, batch.num_rows)


def _delays(batch: Any) -> dict[str, Any]:
    """The properties that delay, of the column there is."""
    if "delayTimeLevel" in batch.schema.names:
        levels = pc.if_else(
            pc.greater(batch.column("delayTimeLevel"), 0), batch.column("delayTimeLevel"), None
        )
        return {names.DELAY: levels.cast(pa.string())}
    if "deliverTimestamp" in batch.schema.names:
        moments = batch.column("deliverTimestamp").cast(pa.int64())
        return {names.TIMER_DELIVER_MS: pc.divide(moments, 1000).cast(pa.string())}
    return {}


def _is_delayed(delays: dict[str, Any], rows: int) -> Any:
    mask = np.zeros(rows, dtype=np.bool_)
    for column in delays.values():
        mask |= np.asarray(column.is_valid())
    return mask


class TopicWriter(_Writing, DataSourceArrowWriter):
    """Batch write. The writer is made once and pickled into every task, also a repeated one: its id names the write."""

    def __init__(self, options: dict[str, str], schema: StructType, *, overwrite: bool) -> None:
        _Writing.__init__(self, options, schema, overwrite=overwrite)
        self._id = uuid.uuid4().hex

    def write(self, iterator: Iterator[Any]) -> Written:
        return self._write(iterator, f"{self._id}/{_partition()}", self._id)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        if self._options.guarantee == TRANSACTIONAL:
            end_transactions(self._options, _stored(messages), is_commit=True)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        if self._options.guarantee == TRANSACTIONAL:
            end_transactions(self._options, _stored(messages), is_commit=False)


class TopicStreamWriter(_Writing, DataSourceStreamArrowWriter):
    """Streaming write: one of these for each batch and again for its commit, so nothing is kept in it."""

    def __init__(self, options: dict[str, str], schema: StructType, *, overwrite: bool) -> None:
        _Writing.__init__(self, options, schema, overwrite=overwrite)
        if self._options.guarantee == TRANSACTIONAL and self._options.topic is None:
            raise OptionError(
                "option topic: is required for streams where guarantee is transactional, "
                "for the last batch is remembered there"
            )

    def write(self, iterator: Iterator[Any]) -> Written:
        context = TaskContext.get()
        query_id = (context.getLocalProperty(QUERY_ID) if context else None) or "no-query"
        batch_id = (context.getLocalProperty(BATCH_ID) if context else None) or "0"
        options = self._options
        if options.guarantee == TRANSACTIONAL and is_written(options, query_id, int(batch_id)):
            return Written(0, 0, [], query_id)
        return self._write(iterator, f"{query_id}/{batch_id}/{_partition()}", query_id)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        if self._options.guarantee != TRANSACTIONAL:
            return
        end_transactions(self._options, _stored(messages), is_commit=True)
        for query_id in {one.query_id for one in messages if isinstance(one, Written)}:
            remember_written(self._options, query_id, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        if self._options.guarantee == TRANSACTIONAL:
            end_transactions(self._options, _stored(messages), is_commit=False)


def _stored(messages: list[WriterCommitMessage | None]) -> list[Stored]:
    return [stored for one in messages if isinstance(one, Written) for stored in one.stored]


def _partition() -> int:
    context = TaskContext.get()
    return context.partitionId() if context else 0
