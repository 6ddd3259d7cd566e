"""Record batches of one task to requests: which rows share a request, and which queue they go to. No Spark."""

import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.flags import TRANSACTION_PREPARED

from ..brokers.batch_sender import BatchSender
from ..brokers.wire import wire_for
from ..errors import OptionError
from ..planning.positions import Queue
from ..records.batch_encoder import batch_slices, bodies_of, elements, property_texts, row_ids
from .sink_options import AT_LEAST_ONCE, TRANSACTIONAL, SinkOptions


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
            for first, stop in batch_slices(
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
