"""The numbers of a streaming query, from its progress events: lag of each topic, messages, bytes, missing messages.

    rows = measured(spark.readStream.format("rocketmq")...load())
    with commit_progress(spark, on_metrics=lambda numbers: print(numbers.lag)):
        ...

Spark leaves the `metrics` of a Python source empty. The offsets of an event give what was waiting and what was
requested. What was really read is counted by `measured`, in the tasks: the difference is what a tolerant query lost.
"""

import json
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..errors import CheckpointError
from ..planning.positions import StreamPosition
from ..planning.ranges import ranges_between

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OBSERVATION: Final = "pocketmq"


class StreamMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of one batch. `requested` are the messages of its offsets. `messages` and `missing` are None, and so
    is `bytes`, unless the source was `measured`; `missing` also if the broker filters, since nobody can know then."""

    query: str
    batch: int
    rows: int
    rows_per_second: float
    took_ms: int
    requested: dict[str, int]
    lag: dict[str, int]
    messages: int | None = None
    bytes: int | None = None
    missing: int | None = None


def measured(frame: "DataFrame", name: str = OBSERVATION) -> "DataFrame":
    """The same rows, counted for `StreamMetrics` on their way: messages, and the bytes of their bodies."""
    from pyspark.sql import functions as F

    counts = [F.count(F.lit(1)).alias("messages")]
    if "body" in frame.columns:
        counts.append(F.sum(F.octet_length("body")).alias("bytes"))
    return frame.observe(name, *counts)


def stream_metrics(progress: dict[str, Any]) -> StreamMetrics:
    """The numbers of a progress event, given as Spark's JSON. Sources of other formats are left out."""
    requested: dict[str, int] = {}
    lag: dict[str, int] = {}
    is_filtered = False
    for source in progress.get("sources") or []:
        try:
            end = position_of(source.get("endOffset"))
            # The first batch of a query may have no start, and records in its end where it began.
            start = position_of(source["startOffset"]).offsets if source.get("startOffset") else {}
        except (CheckpointError, ValueError):
            continue  # another format
        is_filtered |= end.is_filtered
        for part in ranges_between({**start, **end.begun_at}, end.offsets):
            requested[part.queue.topic] = requested.get(part.queue.topic, 0) + part.size
        for topic, waiting in _lag(source, end).items():
            lag[topic] = lag.get(topic, 0) + waiting
    observed = (progress.get("observedMetrics") or {}).get(OBSERVATION) or {}
    messages = observed.get("messages")
    missing = None if messages is None or is_filtered else max(0, sum(requested.values()) - messages)
    return StreamMetrics(
        query=progress.get("name") or str(progress.get("id") or ""),
        batch=int(progress.get("batchId") or 0),
        rows=int(progress.get("numInputRows") or 0),
        rows_per_second=float(progress.get("processedRowsPerSecond") or 0.0),
        took_ms=int((progress.get("durationMs") or {}).get("triggerExecution") or 0),
        requested=requested,
        lag=lag,
        messages=messages,
        bytes=observed.get("bytes") if messages else messages,
        missing=missing,
    )


def position_of(value: Any) -> StreamPosition:
    """The position in a progress event. `CheckpointError` or `ValueError` if it is another source's."""
    found = value if isinstance(value, dict) else json.loads(str(value or "{}"))
    if not isinstance(found, dict):
        raise CheckpointError("another source's offset")
    return StreamPosition.of_json(found)


def _lag(source: dict[str, Any], end: StreamPosition) -> dict[str, int]:
    """Messages of each topic that wait after the end of the batch."""
    try:
        latest = position_of(source.get("latestOffset"))
    except (CheckpointError, ValueError):
        return {}
    lag = dict.fromkeys(sorted({queue.topic for queue in end.offsets}), 0)
    for queue, offset in latest.offsets.items():
        lag[queue.topic] = lag.get(queue.topic, 0) + max(0, offset - end.offsets.get(queue, offset))
    return lag


def metrics_line(numbers: StreamMetrics) -> str:
    """One line: batch, rows, speed, the messages not yet read, and those that are missing."""
    line = (
        f"batch {numbers.batch}: {numbers.rows} rows in {numbers.took_ms} ms "
        f"({numbers.rows_per_second:,.0f}/s), {sum(numbers.lag.values())} waiting"
    )
    return f"{line}, {numbers.missing} missing" if numbers.missing else line
