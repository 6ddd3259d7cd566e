"""The sink of `rocketmq`: data frames, batch and streaming, as messages.

    df.write.format("rocketmq").mode("append").option("topic", "Orders")...save()
    df.writeStream.format("rocketmq").option("topic", "Orders")...start()

Option `guarantee` chooses what it guarantees:

    at-least-once   a task ends only when every message is acknowledged; a task that runs again sends again
    idempotent      (default) the same, and a message that is sent again has the same UNIQ_KEY, computed from query,
                    batch, partition and row; so readers can drop duplicates. The plan must give the same rows to the
                    same partition again, which a shuffle without a sort before the sink may not do
    transactional   tasks send half messages; the driver commits them when all tasks are done, and stores the batch
                    number as an offset of a group, so that a committed batch is not sent again. A commit that
                    fails midway, or whose driver dies, leaves some messages committed: that batch is repeated, with
                    the same UNIQ_KEYs
"""

import itertools
import logging
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ...errors import OptionError, PipelineError
from ...tables.brokers.batch_sender import BatchSender, HalfMessages
from ...tables.planning.spark_processes import freeze_imports
from .sink_options import TRANSACTIONAL, check_columns, read_sink_options
from .task_sender import TaskSender, sender_for
from .transactions import end_transactions, is_batch_committed, mark_batch_committed

_log = logging.getLogger("pocketmq.pipeline")

QUERY_ID: Final = "sql.streaming.queryId"
BATCH_ID: Final = "streaming.sql.batchId"


@dataclass
class TaskResult(WriterCommitMessage):
    """What one task has sent; Spark hands it to the driver."""

    half_messages: HalfMessages
    query_id: str


class _WriterBase:
    """The common part of batch and stream writers: options, columns, and the work of one task."""

    def __init__(self, options: dict[str, str], schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise OptionError("mode overwrite or complete", ": a topic can only be appended to")
        self._options = read_sink_options(options)
        check_columns([(field.name, field.dataType.simpleString()) for field in schema.fields], self._options)

    def _write(self, batches: Iterator[Any], writer: str, query_id: str) -> TaskResult:
        freeze_imports()
        sender = sender_for(self._options)
        task = TaskSender(sender, self._options, writer)
        try:
            for batch in batches:
                task.send(batch)
            sender.finish()
        except BaseException:
            self._give_up(sender)
            raise
        if sender.unflushed_requests:
            _log.warning(
                "%d requests are stored, but not yet flushed or replicated", sender.unflushed_requests
            )
        return TaskResult(sender.half_messages, query_id)

    def _end(self, messages: list[WriterCommitMessage | None], *, is_commit: bool) -> None:
        """Commit or roll back what the tasks of a transactional write have sent."""
        if self._options.guarantee == TRANSACTIONAL:
            of_tasks = (result.half_messages for result in messages if isinstance(result, TaskResult))
            end_transactions(self._options, itertools.chain.from_iterable(of_tasks), is_commit=is_commit)

    def _give_up(self, sender: BatchSender) -> None:
        """Stop a task that fails, and roll back its half messages: Spark gives `abort` only those of the others."""
        if self._options.guarantee != TRANSACTIONAL:
            sender.cancel()
            return
        timeout_ms = self._options.send_timeout_ms
        sender.cancel(after_seconds=timeout_ms / 1000)
        with_short_timeout = msgspec.structs.replace(self._options, retry_timeout_ms=timeout_ms)
        try:
            end_transactions(with_short_timeout, sender.half_messages, is_commit=False)
        except PipelineError as error:  # not raised: the user must see the failure of the task
            _log.warning("half messages stay until the broker rolls them back: %s", error)


class TopicWriter(_WriterBase, DataSourceArrowWriter):
    """Writes a batch.

    Spark creates one writer and pickles it into every task, also a repeated one: its id names the write.
    """

    def __init__(self, options: dict[str, str], schema: StructType, *, overwrite: bool) -> None:
        _WriterBase.__init__(self, options, schema, overwrite=overwrite)
        self._id = uuid.uuid4().hex

    def write(self, iterator: Iterator[Any]) -> TaskResult:
        return self._write(iterator, f"{self._id}/{_partition()}", self._id)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        freeze_imports()
        self._end(messages, is_commit=True)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._end(messages, is_commit=False)


class TopicStreamWriter(_WriterBase, DataSourceStreamArrowWriter):
    """Writes a stream. Spark creates a writer for each batch and another for its commit, so it keeps no state."""

    def __init__(self, options: dict[str, str], schema: StructType, *, overwrite: bool) -> None:
        _WriterBase.__init__(self, options, schema, overwrite=overwrite)
        if self._options.guarantee == TRANSACTIONAL and self._options.topic is None:
            raise OptionError(
                "option topic",
                "is required for streams if guarantee is transactional: "
                "the number of the last batch is stored there",
            )

    def write(self, iterator: Iterator[Any]) -> TaskResult:
        context = TaskContext.get()
        query_id = (context.getLocalProperty(QUERY_ID) if context else None) or "no-query"
        batch_id = (context.getLocalProperty(BATCH_ID) if context else None) or "0"
        options = self._options
        if options.guarantee == TRANSACTIONAL and is_batch_committed(options, query_id, int(batch_id)):
            return TaskResult(HalfMessages(), query_id)
        return self._write(iterator, f"{query_id}/{batch_id}/{_partition()}", query_id)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        freeze_imports()
        self._end(messages, is_commit=True)
        if self._options.guarantee == TRANSACTIONAL:
            for query_id in {result.query_id for result in messages if isinstance(result, TaskResult)}:
                mark_batch_committed(self._options, query_id, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._end(messages, is_commit=False)


def _partition() -> int:
    context = TaskContext.get()
    return context.partitionId() if context else 0
