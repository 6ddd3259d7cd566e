"""Dead letters sent back: to their topic of origin, or to the retry topic of their group. No Spark."""

import json
from collections import Counter
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pocketmq.protocol.message.properties import DLQ_ORIGIN_TOPIC, RETRY_TOPIC
from pocketmq.protocol.message.topics import retry_topic

from ..brokers.batch_sender import BatchSender
from ..brokers.broker_client import BrokerClient
from ..planning.positions import Queue, offsets_to_json
from ..report.report import Section
from ..sql.arrow_frame import frame_of_rows
from ..sql.message_input import MessageInput
from ..tables.conditions import condition_of
from ..tables.readers import topic_table
from .copies import COLUMNS, send_copies
from .dead_letters import GROUP, TIMEOUT_MS, Wanted

GROUP_OF_JOB: Final = "pocketmq-dlq"
"""Its offset in a dead letter topic says what was sent back."""
FROM: Final = "sentBackFrom"
"""The property of a copy with the dead letter topic."""
READ: Final = (*COLUMNS, "brokerName", "queueId", "queueOffset", "tags", "storeTimestamp", "reconsumeTimes")


def send_back(source: MessageInput, wanted: Wanted, topics: list[str]) -> Section:
    """Send copies of the dead letters, commit what was sent, and return the counts. With `wanted.is_dry` only count."""
    assert source.namesrv_addr is not None
    sent: Counter[tuple[str, str]] = Counter()
    unknown: Counter[tuple[str, str]] = Counter()
    with BrokerClient(source.namesrv_addr, source.access).closing() as client:
        for topic in topics:
            ends = _send_topic(client, source, wanted, topic, sent, unknown)
            if ends and wanted.is_of_all(source) and not wanted.is_dry:
                client.commit(GROUP_OF_JOB, ends, TIMEOUT_MS)
    what = "would be sent" if wanted.is_dry else "sent"
    rows = [(*place, what, count) for place, count in sorted(sent.items())]
    rows += [
        (*place, "not sent: the topic of origin is unknown", count)
        for place, count in sorted(unknown.items())
    ]
    schema = {"deadIn": pa.string(), "target": pa.string(), "what": pa.string(), "messages": pa.int64()}
    return Section("sent", "Sent back", frame_of_rows(schema, rows))


def _send_topic(
    client: BrokerClient,
    source: MessageInput,
    wanted: Wanted,
    topic: str,
    sent: Counter[tuple[str, str]],
    unknown: Counter[tuple[str, str]],
) -> dict[Queue, int]:
    """One past the last message of each queue that was read and sent."""
    sender = BatchSender(
        client, group=GROUP_OF_JOB, in_flight=4, timeout_ms=TIMEOUT_MS, retry_timeout_ms=60_000
    )
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
        starting_offsets=_text(begins),
        ending_offsets=_text(ends),
    )
    filters: list[tuple[str, str, Any]] = [] if wanted.tag is None else [("tags", "=", wanted.tag)]
    if wanted.least_attempts is not None:
        filters.append(("reconsumeTimes", ">=", wanted.least_attempts))
    condition = condition_of(table.schema, filters or None, source.since_ms, source.until_ms)
    for batch in table.batches(READ, condition):
        origins = pa.array(
            [_origin(pairs or ()) for pairs in batch.column("properties").to_pylist()], pa.string()
        )
        for origin in pc.unique(origins).to_pylist():
            if wanted.origin is not None and origin != wanted.origin:
                continue
            chosen = batch.filter(pc.equal(origins, origin) if origin is not None else pc.is_null(origins))
            group = topic.rpartition("%")[2]
            target = retry_topic(group) if wanted.send_back == GROUP else origin
            if origin is None or target is None:
                unknown[topic, "-"] += chosen.num_rows
                continue
            sent[topic, target] += chosen.num_rows
            if wanted.is_dry:
                continue
            extra = {FROM: topic} | ({RETRY_TOPIC: origin} if wanted.send_back == GROUP else {})
            send_copies(sender, chosen, target, None, extra=extra)
    sender.finish()
    return ends


def _origin(properties: Any) -> str | None:
    found = dict(properties)
    return found.get(DLQ_ORIGIN_TOPIC) or found.get(RETRY_TOPIC)


def _text(offsets: dict[Queue, int]) -> str:
    return json.dumps(offsets_to_json(offsets))
