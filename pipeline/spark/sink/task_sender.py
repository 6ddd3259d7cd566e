"""Record batches of one task to requests: which rows share a request, and which queue they go to. No Spark.

Rows of one queue (columns brokerName and queueId, or shardingKey) keep their order. Delayed rows and half messages are
sent one by one, all others in batches of one topic. Bytes: `tables/records/batch_encoder.py`.
"""

import uuid
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.flags import TRANSACTION_PREPARED

from ...errors import OptionError
from ...tables.brokers.batch_sender import BatchSender
from ...tables.brokers.broker_client import shared_client
from ...tables.planning.positions import Queue
from ...tables.records.batch_encoder import bodies_of, elements, property_texts, requests, row_ids
from .sink_options import AT_LEAST_ONCE, TRANSACTIONAL, SinkOptions

MAX_DESTINATIONS: Final = 65_536
"""Sharding keys and queues whose destination a task remembers."""


def sender_for(options: SinkOptions) -> BatchSender:
    """The sender of one task."""
    return BatchSender(
        shared_client(options.namesrv_addr, options.access),
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
        self._destination_of: dict[tuple[Any, ...], tuple[str, Queue | None]] = {}
        """Chosen once for a whole task: rows with the same values stay in one queue, and so in order."""

    def send(self, batch: Any) -> None:
        """All rows of one record batch."""
        ids = row_ids(self._writer, self._row, batch.num_rows)
        self._row += batch.num_rows
        if "messageId" in batch.schema.names:
            own = batch.column("messageId")
            ids = pc.if_else(pc.fill_null(pc.greater(pc.binary_length(own), 0), False), own, ids)
        if self._options.guarantee == TRANSACTIONAL:
            values = {names.TRAN_MSG: "true", names.PGROUP: self._options.group}
            extra = {name: pa.repeat(value, batch.num_rows) for name, value in values.items()}
            self._send_singly(batch, property_texts(batch, ids, extra=extra), TRANSACTION_PREPARED)
            return
        delays = _delays(batch)
        texts = property_texts(batch, ids, extra=delays)
        is_single = np.zeros(batch.num_rows, dtype=np.bool_)
        for column in delays.values():
            is_single |= np.asarray(column.is_valid())
        if is_single.any():
            for _ in self._destinations(batch):  # all are known before the first row is sent
                pass
            mask = pa.array(is_single)
            self._send_singly(batch.filter(mask), texts.filter(mask), 0)
            batch, texts = batch.filter(pc.invert(mask)), texts.filter(pc.invert(mask))
        if batch.num_rows:
            self._send_batches(batch, texts)

    def _send_batches(self, batch: Any, texts: Any) -> None:
        flags = batch.column("flag") if "flag" in batch.schema.names else None
        encoded = elements(bodies_of(batch), texts, flags)
        for topic, queue, rows in self._groups(batch):
            group = encoded if rows is None else encoded.take(pa.array(rows))
            for first, stop, body in requests(group, self._options.batch_rows, self._options.batch_bytes):
                if body is None:
                    self._send_row(batch, texts, first if rows is None else int(rows[first]), topic, queue)
                else:
                    self._sender.send_batch(topic, body, stop - first, queue=queue)

    def _send_row(self, batch: Any, texts: Any, row: int, topic: str, queue: Queue | None) -> None:
        flag = batch.column("flag")[row].as_py() if "flag" in batch.schema.names else 0
        body = bodies_of(batch.slice(row, 1))[0].as_py()
        self._sender.send_one(topic, body, texts[row].as_py(), flag or 0, queue=queue)

    def _groups(self, batch: Any) -> Iterator[tuple[str, Queue | None, Any]]:
        """(topic, queue or None for any, row numbers or None for all): the rows that may share a request."""
        present = set(batch.schema.names)
        if self._options.topic is not None and not present & {"queueId", "shardingKey"}:
            yield self._options.topic, None, None
            return
        keys: dict[tuple[str, Queue | None], list[int]] = {}
        for row, destination in enumerate(self._destinations(batch)):
            keys.setdefault(destination, []).append(row)
        for (topic, queue), rows in keys.items():
            yield topic, queue, np.array(rows)

    def _destinations(self, batch: Any) -> Iterator[tuple[str, Queue | None]]:
        present = set(batch.schema.names)
        nothing = [None] * batch.num_rows
        values = (
            batch.column(name).to_pylist() if name in present else nothing
            for name in ("topic", "brokerName", "queueId", "shardingKey")
        )
        known = self._destination_of
        for key in zip(*values, strict=True):
            destination = known.get(key)
            if destination is None:
                if len(known) >= MAX_DESTINATIONS:
                    known.clear()
                destination = known[key] = self._destination(*key)
            yield destination

    def _destination(
        self, topic: str | None, broker_name: str | None, queue_id: int | None, sharding: str | None
    ) -> tuple[str, Queue | None]:
        name = self._options.topic or topic
        if not name:
            raise OptionError("column topic", "is null or empty in a row, and option topic is not set")
        if queue_id is not None:
            return name, self._sender.queue_of(name, queue_id, broker_name)
        return name, None if not sharding else self._sender.queue_for(name, sharding)

    def _send_singly(self, batch: Any, texts: Any, sys_flag: int) -> None:
        flags = batch.column("flag").to_pylist() if "flag" in batch.schema.names else [0] * batch.num_rows
        places = list(self._destinations(batch))  # all are known before the first row is sent
        rows = zip(bodies_of(batch), texts.to_pylist(), flags, places, strict=True)
        for body, text, flag, (topic, queue) in rows:
            self._sender.send_one(topic, body.as_py(), text, flag or 0, queue=queue, sys_flag=sys_flag)


def _delays(batch: Any) -> dict[str, Any]:
    if "delayTimeLevel" in batch.schema.names:
        levels = pc.if_else(
            pc.greater(batch.column("delayTimeLevel"), 0), batch.column("delayTimeLevel"), None
        )
        return {names.DELAY: levels.cast(pa.string())}
    if "deliverTimestamp" in batch.schema.names:
        moments = batch.column("deliverTimestamp").cast(pa.int64())
        return {names.TIMER_DELIVER_MS: pc.divide(moments, 1000).cast(pa.string())}
    return {}
