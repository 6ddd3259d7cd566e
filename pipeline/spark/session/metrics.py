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

from ...errors import CheckpointError
from ...tables.planning.positions import Queue, StreamPosition
from ...tables.planning.ranges import ranges_between

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OBSERVATION: Final = "pocketmq"
KEPT_REPORTS: Final = 100
"""Progress reports that Spark keeps of a query, whatever it does; the others are gone."""


class StreamMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of one batch. `requested` are the messages of its offsets. `messages` and `missing` are None, and so
    is `bytes`, unless the source was `measured`; `missing` also if the broker filters, since it cannot be known then.

    The `offsets_behind_latest` are those of the queues, under the names of the Kafka connector's metrics; None if the
    event has no latest offsets.
    """

    query: str
    batch: int
    rows: int
    rows_per_second: float
    took_ms: int
    requested: dict[str, int]
    lag: dict[str, int]
    min_offsets_behind_latest: int | None = None
    max_offsets_behind_latest: int | None = None
    avg_offsets_behind_latest: float | None = None
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


def observed_fields(row: dict[str, Any]) -> dict[str, Any]:
    """The columns of an observed row by name. Spark Connect hands over the row's parts: its values, and its schema."""
    if row.keys() != {"values", "schema"} or not isinstance(row["schema"], dict):
        return row
    return dict(zip((field["name"] for field in row["schema"]["fields"]), row["values"], strict=True))


def stream_metrics(progress: dict[str, Any]) -> StreamMetrics:
    """The numbers of a progress event, given as Spark's JSON. Sources of other formats are left out."""
    requested: dict[str, int] = {}
    lag: dict[str, int] = {}
    behind: list[int] = []
    is_filtered = False
    for source in progress.get("sources") or []:
        try:
            end = position_of(source.get("endOffset"))
            # The first batch of a query may have no start, and records in its end where it began.
            start = position_of(source["startOffset"]).offsets if source.get("startOffset") else {}
        except (CheckpointError, ValueError):
            continue  # another format
        is_filtered |= end.is_filtered
        for part in ranges_between({**start, **end.start_offsets}, end.offsets):
            requested[part.queue.topic] = requested.get(part.queue.topic, 0) + part.size
        for queue, waiting in _behind(source, end).items():
            lag[queue.topic] = lag.get(queue.topic, 0) + waiting
            behind.append(waiting)
    observed = observed_fields((progress.get("observedMetrics") or {}).get(OBSERVATION) or {})
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
        min_offsets_behind_latest=min(behind, default=None),
        max_offsets_behind_latest=max(behind, default=None),
        avg_offsets_behind_latest=sum(behind) / len(behind) if behind else None,
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


def _behind(source: dict[str, Any], end: StreamPosition) -> dict[Queue, int]:
    """Messages of each queue that wait after the end of the batch; empty if the event does not say."""
    try:
        latest = position_of(source.get("latestOffset"))
    except (CheckpointError, ValueError):
        return {}
    return {
        queue: max(0, latest.offsets.get(queue, offset) - offset) for queue, offset in end.offsets.items()
    }


def metrics_line(numbers: StreamMetrics) -> str:
    """One line: batch, rows, speed, the messages not yet read, and those that are missing."""
    line = (
        f"batch {numbers.batch}: {numbers.rows} rows in {numbers.took_ms} ms "
        f"({numbers.rows_per_second:,.0f}/s), {sum(numbers.lag.values())} waiting"
    )
    return f"{line}, {numbers.missing} missing" if numbers.missing else line


def keep_reports(spark: "SparkSession") -> None:
    """Let the queries that start from now on keep as many reports as `BatchCounts` needs."""
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", KEPT_REPORTS)


class BatchCounts:
    """The rows of one query, as its metric `name` counts them: `frame.observe(name, count("*").alias("messages"))`.

    `look` adds up the reports that are new, so it must be called before Spark has dropped one: every second is enough.
    """

    def __init__(self, query: Any, name: str) -> None:
        self._query = query
        self._name = name
        self._last_batch = -1
        self.rows = 0

    def look(self) -> int:
        """Add what is new, and return the sum. Only if there is something new all reports are fetched."""
        last = self._query.lastProgress
        if last is None or last.batchId <= self._last_batch:
            return self.rows
        for progress in self._query.recentProgress:
            counts = progress.observedMetrics.get(self._name)
            if progress.batchId > self._last_batch and counts is not None:
                self._last_batch = progress.batchId
                self.rows += int(observed_fields(counts.asDict()).get("messages") or 0)
        return self.rows
