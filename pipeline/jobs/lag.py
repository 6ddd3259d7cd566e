"""How far groups are behind: `python -m pocketmq.pipeline.jobs.lag --store DIR`, or `-n ADDR --topics T --groups G`.

For each group, topic and queue: offset, end, lag in messages, and how long the next unread message has been waiting.
For a store the groups are those of its consumer offset table. For a running broker `--groups` names them.
"""

from typing import TYPE_CHECKING, Any

import click

from ..errors import OptionError
from ..planning.ranges import Range
from ..planning.topic_options import SourceOptions
from ..report.report import Report, Section
from .inputs import MessageInput, input_options, split_input_options
from .run import output_options, run_job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ..brokers.broker_client import BrokerClient

RETRY_TIMEOUT_MS = 10_000
_LAG = ("`group`", "topic", "queueId", "offset", "maxOffset")
_LAG_MESSAGES = "greatest(maxOffset - offset, 0) as lag"
_LAG_TIME = "round(cast(current_timestamp() as double) - cast(storeTimestamp as double), 1) as waitingSeconds"
_OFFSETS = "`group` string, topic string, queueId int, offset bigint, maxOffset bigint"


def build(spark: "SparkSession", source: MessageInput, *, groups: str | None = None) -> Report:
    """The report; `groups` are comma-separated names."""
    check(source, groups)
    lags = (
        lags_of_store(spark, source, groups)
        if source.store is not None
        else lags_of_broker(spark, source, groups)
    ).cache()
    by_group = lags.groupBy("group", "topic").agg(*_sums()).orderBy("group", "topic")
    return Report(
        "Lag",
        f"Of {source.store or source.namesrv_addr}.",
        [
            Section("groups", "Groups", by_group),
            Section("queues", "Queues", lags.orderBy("group", "topic", "queueId")),
        ],
    )


def check(source: MessageInput, groups: str | None) -> None:
    """`OptionError` for options that do not name what to read."""
    source.check()
    if source.namesrv_addr is not None and not _names(groups or ""):
        raise OptionError("--groups is required with --namesrv")


def _sums() -> tuple[Any, ...]:
    from pyspark.sql import functions as F

    return (
        F.sum("lag").alias("lag"),
        F.max("waitingSeconds").alias("waitingSeconds"),
        F.count("*").alias("queues"),
    )


def lags_of_store(spark: "SparkSession", source: MessageInput, groups: str | None) -> "DataFrame":
    """From the files: consumer offsets, ends of the consume queues, and the next message's time from the log."""
    from pyspark.sql import functions as F

    reader = spark.read.format("rocketmq-store").option("path", source.store or "")
    offsets = reader.option("table", "consumerOffsets").load()
    if groups is not None:
        offsets = offsets.where(F.col("group").isin(*_names(groups)))
    chosen = {} if source.topics is None else {"topics": source.topics}
    units = reader.options(**chosen, table="consumequeue").load()
    ends = units.groupBy("topic", "queueId").agg((F.max("queueOffset") + 1).alias("maxOffset"))
    times = reader.options(**chosen, table="messages").schema(
        "topic string, queueId int, queueOffset bigint, storeTimestamp timestamp"
    ).load()  # fmt: skip
    return _with_time(offsets.join(ends, ["topic", "queueId"]), times)


def lags_of_broker(spark: "SparkSession", source: MessageInput, groups: str | None) -> "DataFrame":
    """From the broker; the next unread message of each queue is pulled for its time."""
    from ..brokers.broker_client import shared_client

    assert source.namesrv_addr is not None
    assert groups is not None
    broker = shared_client(source.namesrv_addr, source.access)
    rows = []
    for topic in _names(source.topics or ""):
        bounds = broker.bounds(broker.queues(topic, RETRY_TIMEOUT_MS), RETRY_TIMEOUT_MS)
        for group in _names(groups):
            for queue, offset in broker.committed(group, bounds, RETRY_TIMEOUT_MS).items():
                if offset is not None:
                    low, high = bounds[queue].low, bounds[queue].high
                    stored_ms = _store_time_ms(broker, Range(queue, max(offset, low), high), source)
                    rows.append((group, topic, queue.queue_id, offset, high, stored_ms))
    lags = spark.createDataFrame(rows, f"{_OFFSETS}, storedMs bigint")
    return lags.selectExpr(*_LAG, "timestamp_millis(storedMs) as storeTimestamp").selectExpr(
        *_LAG, _LAG_MESSAGES, _LAG_TIME
    )


def _store_time_ms(broker: "BrokerClient", unread: Range, source: MessageInput) -> int | None:
    """When the first of these messages was stored; None if there is none."""
    from ..brokers.range_reader import RangeReader

    if unread.size <= 0:
        return None
    options = SourceOptions(namesrv_addr=broker.namesrv_addr, access=source.access, fail_on_data_loss=False)
    first = Range(unread.queue, unread.lo, unread.lo + 1)
    for records in RangeReader(broker, first, options).batches():
        return int(records.column("storeTimestamp").to_pylist()[0].timestamp() * 1000)
    return None


def _with_time(lags: "DataFrame", times: "DataFrame") -> "DataFrame":
    """Lags with the store time of the message at each offset."""
    unread = times.withColumnRenamed("queueOffset", "offset")
    joined = lags.join(unread, ["topic", "queueId", "offset"], "left")
    return joined.selectExpr(*_LAG, _LAG_MESSAGES, _LAG_TIME)


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


@click.command("lag")
@input_options
@click.option("--groups", metavar="G[,G]", help="Groups to report; default for a store: all.")
@output_options
def main(*, groups: str | None, **values: Any) -> None:
    """How far groups are behind, in messages and in time."""
    source, options = split_input_options(values)
    run_job(
        "lag",
        lambda spark: build(spark, source, groups=groups),
        check=lambda: check(source, groups),
        **options,
    )


if __name__ == "__main__":
    main()
