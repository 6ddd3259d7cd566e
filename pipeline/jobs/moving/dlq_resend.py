"""Dead letters sent back: to their topic of origin, or to the retry topic of their group. No Spark."""

import json
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pocketmq.protocol.message.properties import RETRY_TOPIC
from pocketmq.protocol.message.topics import DLQ_PREFIX, retry_topic

from ...errors import SendError
from ...tables.arrow.conditions import condition_of
from ...tables.arrow.readers import topic_table
from ...tables.brokers.batch_sender import BatchSender
from ...tables.brokers.broker_client import BrokerClient
from ...tables.planning.positions import Queue, offsets_to_json
from ..report.report import Section
from ..sql.arrow_frame import frame_of_rows
from ..sql.message_input import MessageInput
from .copies import COLUMNS, Copy, copies_of
from .dead_letters import ORIGIN, TIMEOUT_MS, Wanted, origin_of, retry_topic_of

GROUP_OF_JOB: Final = "pocketmq-dlq"
"""Its offset in a dead letter topic says what was sent back."""
FROM: Final = "sentBackFrom"
"""The property of a copy with the dead letter topic."""
READ: Final = (*COLUMNS, "brokerName", "queueId", "queueOffset", "tags", "storeTimestamp", "reconsumeTimes")

SENT: Final = "sent"
NO_ORIGIN: Final = "not sent: the topic of origin is unknown"
ORIGIN_DELETED: Final = "not sent: the topic of origin does not exist"


def send_back(
    source: MessageInput, wanted: Wanted, topics: Sequence[str], existing: Collection[str]
) -> Section:
    """Send copies of the dead letters, commit what was sent, and return the counts. With `wanted.is_dry` only count.

    `existing` are all topics. `SendError` if a broker refuses a copy: what was sent before is committed.
    """
    assert source.namesrv_addr is not None
    counts: Counter[tuple[str, str, str]] = Counter()
    with BrokerClient(source.namesrv_addr, source.access).closing() as client:
        sent_back = _SentBack(client, source, wanted, frozenset(existing), counts)
        for topic in topics:
            sent_back.send(topic)
    rows = [
        (*place, count)
        for place, count in sorted(
            counts.items(), key=lambda row: (row[0][2] in (NO_ORIGIN, ORIGIN_DELETED), row)
        )
    ]
    schema = {"deadIn": pa.string(), "target": pa.string(), "what": pa.string(), "messages": pa.int64()}
    return Section("sent", "Sent back", frame_of_rows(schema, rows))


class _SentBack(msgspec.Struct, frozen=True):
    """The dead letters of topics, batch by batch: what is acknowledged of one is committed before the next is sent."""

    client: BrokerClient
    source: MessageInput
    wanted: Wanted
    existing: frozenset[str]
    counts: Counter[tuple[str, str, str]]

    def send(self, topic: str) -> None:
        client, source, wanted = self.client, self.source, self.wanted
        bounds = client.bounds(client.queues(topic, TIMEOUT_MS), TIMEOUT_MS)
        begins = {queue: held.low for queue, held in bounds.items()}
        if not wanted.sends_again:
            committed = client.committed(GROUP_OF_JOB, bounds, TIMEOUT_MS)
            begins = {
                queue: min(max(committed[queue] or 0, held.low), held.high) for queue, held in bounds.items()
            }
        ends = {queue: held.high for queue, held in bounds.items()}
        table = topic_table(
            source.namesrv_addr or "",
            topic,
            access=source.access,
            starting_offsets=json.dumps(offsets_to_json(begins)),
            ending_offsets=json.dumps(offsets_to_json(ends)),
            decompress=False,
        )
        filters: list[tuple[str, str, Any]] = [] if wanted.tag is None else [("tags", "=", wanted.tag)]
        if wanted.least_attempts is not None:
            filters.append(("reconsumeTimes", ">=", wanted.least_attempts))
        condition = condition_of(table.schema, filters or None, source.since_ms, source.until_ms)
        for batch in table.batches(READ, condition):
            is_done = np.ones(batch.num_rows, np.bool_)
            try:
                self._send_batch(batch, topic, is_done)
            finally:
                self._commit(_following(batch, topic, is_done))
        self._commit(ends)

    def _commit(self, offsets: dict[Queue, int]) -> None:
        if offsets and self.wanted.is_of_all(self.source) and not self.wanted.is_dry:
            self.client.commit(GROUP_OF_JOB, offsets, TIMEOUT_MS)

    def _send_batch(self, batch: Any, topic: str, is_done: npt.NDArray[np.bool_]) -> None:
        """Send what is wanted of a batch. `is_done` is false for rows whose copies are not acknowledged."""
        wanted, group = self.wanted, topic.removeprefix(DLQ_PREFIX)
        maps = batch.column("properties").to_pylist()
        origins = pa.array([origin_of(dict(pairs or ()), group) for pairs in maps], pa.string())
        targets: list[tuple[str, str, Any]] = []
        for origin in pc.unique(origins).to_pylist():
            if wanted.origin is not None and origin != wanted.origin:
                continue
            mask = pc.equal(origins, origin) if origin is not None else pc.is_null(origins)
            rows = np.flatnonzero(mask.fill_null(False).to_numpy(zero_copy_only=False))
            if origin is None:
                self.counts[topic, "-", NO_ORIGIN] += len(rows)
                continue
            target = origin if wanted.send_back == ORIGIN else retry_topic_of(group, origin, self.existing)
            if target == origin and origin not in self.existing:
                self.counts[topic, target, ORIGIN_DELETED] += len(rows)
            elif wanted.is_dry:
                self.counts[topic, target, "would be sent"] += len(rows)
            else:
                targets.append((origin, target, rows))
                is_done[rows] = False
        for origin, target, rows in targets:
            extra = {FROM: topic} | ({RETRY_TOPIC: origin} if target == retry_topic(group) else {})
            try:
                self._send_rows(batch, rows, target, extra, is_done)
            finally:
                self.counts[topic, target, SENT] += int(is_done[rows].sum())

    def _send_rows(
        self,
        batch: Any,
        rows: npt.NDArray[np.int64],
        target: str,
        extra: dict[str, str],
        is_done: npt.NDArray[np.bool_],
    ) -> None:
        sender = BatchSender(
            self.client, group=GROUP_OF_JOB, in_flight=4, timeout_ms=TIMEOUT_MS, retry_timeout_ms=60_000
        )
        try:
            for copy in copies_of(batch.take(pa.array(rows)), target, extra=extra):

                def acknowledged(queue: Queue, offset: int, copy: Copy = copy) -> None:
                    is_done[rows[copy.first : copy.stop]] = True

                count = copy.stop - copy.first
                sender.send(copy.request(sender, target), copy.body, count, stored=acknowledged)
            sender.finish()
        except SendError as error:
            sender.cancel(after_seconds=TIMEOUT_MS / 1000)
            before = sum(count for (*_, what), count in self.counts.items() if what == SENT)
            count = before + int(is_done[rows].sum())
            raise SendError(f"{error}; copies sent before that: {count:,}") from error


def _following(batch: Any, topic: str, is_done: npt.NDArray[np.bool_]) -> dict[Queue, int]:
    """For each queue of a batch: the offset after the rows from its first one that are done."""
    names, ids = batch.column("brokerName").to_pylist(), batch.column("queueId").to_pylist()
    offsets = batch.column("queueOffset").to_pylist()
    following: dict[Queue, int] = {}
    ended: set[Queue] = set()
    for name, queue_id, offset, is_row_done in zip(names, ids, offsets, is_done.tolist(), strict=True):
        queue = Queue(topic, name, queue_id)
        if not is_row_done:
            ended.add(queue)
        elif queue not in ended:
            following[queue] = offset + 1
    return following
