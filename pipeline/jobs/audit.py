"""Gaps, disorder and damage in a store: `python -m pocketmq.pipeline.jobs.audit --store DIR`.

    damaged    bytes that are not a record, and records whose body does not match the stored CRC
    gaps       queue offsets that no record has, and offsets that several records have
    order      records that lie in the log after one with a higher offset of their queue
    index      units of consume queues without their record, and records without their unit

The cheap check is first: a queue with last - first + 1 records and as many different offsets has no gap, and only the
other queues are sorted. Only headers are read, except for the CRC check (`--no-crc` skips it).
"""

from typing import TYPE_CHECKING, Any

import click

from ..report.report import Report, Section, counted
from ..sql.message_input import check_store
from .run import output_options, run_job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HEADERS = (
    "topic string, queueId int, queueOffset bigint, physicalOffset bigint, storeSize int, sysFlag int, "
    "file string, status string"
)
OF_QUEUE = ("topic", "queueId")
_NOT_IN_QUEUES = "(sysFlag & 12) in (4, 12)"
"""Half messages and rollbacks: they are in the log, never in a queue."""


def build(spark: "SparkSession", store: str, *, topics: str | None = None, checks_crc: bool = True) -> Report:
    """The report over a store directory."""
    options = {"path": store, "onCorrupt": "report", "verifyCrc": str(checks_crc).lower()}
    if topics is not None:
        options["topics"] = topics
    found = spark.read.format("rocketmq-store").schema(HEADERS).options(**options).load().cache()
    damaged = found.where("status <> 'ok'").select(
        "file", "physicalOffset", "status", "topic", "queueId", "queueOffset"
    )
    # A record with a damaged body is still in its queue.
    good = found.where("status in ('ok', 'bad crc')").where(f"not {_NOT_IN_QUEUES}")
    gaps = gaps_of(good)
    disorder = disorder_of(good)
    index = index_of(spark, good, options)
    queues = queues_of(good)
    sections = [
        Section("damaged", "Damaged records", damaged),
        Section("gaps", "Gaps and repeated offsets", gaps),
        Section("order", "Records out of order", disorder),
        Section("index", "Consume queues against the log", index),
        Section("queues", "Queues", queues),
    ]
    findings = [
        *(f"{row.status} at log position {row.physicalOffset} ({row.file})" for row in damaged.limit(20).collect()),
        *(f"{row.topic} queue {row.queueId}: {row.what}, {counted(row['count'], 'message')} from offset {row.first}"
          for row in gaps.limit(20).collect()),
        *(f"{row.topic} queue {row.queueId}: offset {row.queueOffset} lies after offset {row.previous} in the log"
          for row in disorder.limit(20).collect()),
        *(f"{row.topic} queue {row.queueId} offset {row.queueOffset}: {row.what}" for row in index.limit(20).collect()),
    ]  # fmt: skip
    return Report("Store audit", f"Store {store}.", sections, findings)


def queues_of(good: "DataFrame") -> "DataFrame":
    """One row for each queue."""
    return good.groupBy(*OF_QUEUE).agg(*_bounds()).orderBy(*OF_QUEUE)


def _bounds() -> tuple[Any, ...]:
    from pyspark.sql import functions as F

    return (
        F.count("*").alias("records"),
        F.min("queueOffset").alias("first"),
        F.max("queueOffset").alias("last"),
        F.countDistinct("queueOffset").alias("offsets"),
    )


def gaps_of(good: "DataFrame") -> "DataFrame":
    """(topic, queueId, what, first, count): missing and repeated offsets, of the queues with a wrong count."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    wrong = queues_of(good).where("records <> last - first + 1 or offsets <> records").select(*OF_QUEUE)
    rows = good.join(F.broadcast(wrong), list(OF_QUEUE)).select(*OF_QUEUE, "queueOffset")
    previous = F.lag("queueOffset").over(Window.partitionBy(*OF_QUEUE).orderBy("queueOffset"))
    stepped = rows.withColumn("previous", previous)
    missing = stepped.where("queueOffset > previous + 1").selectExpr(
        *OF_QUEUE, "'missing' as what", "previous + 1 as first", "queueOffset - previous - 1 as count"
    )
    twice = (
        stepped.where("queueOffset = previous")
        .groupBy(*OF_QUEUE, "queueOffset")
        .count()
        .selectExpr(*OF_QUEUE, "'offset more than once' as what", "queueOffset as first", "count")
    )
    return missing.unionByName(twice).orderBy(*OF_QUEUE, "first")


def disorder_of(good: "DataFrame") -> "DataFrame":
    """Records that lie in the log after one with a higher offset of their queue."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    of_queue = Window.partitionBy(*OF_QUEUE).orderBy("physicalOffset")
    return (
        good.withColumn("previous", F.lag("queueOffset").over(of_queue))
        .where("queueOffset < previous")
        .select(*OF_QUEUE, "queueOffset", "previous", "physicalOffset")
    )


def index_of(spark: "SparkSession", good: "DataFrame", options: dict[str, str]) -> "DataFrame":
    """Units and records that do not match each other. Units of deleted log files are not reported."""
    from pyspark.sql import functions as F

    chosen = {name: value for name, value in options.items() if name in ("path", "topics")}
    units = spark.read.format("rocketmq-store").options(**chosen, table="consumequeue").load()
    begin = good.agg(F.min("physicalOffset").alias("begin"))
    units = units.crossJoin(F.broadcast(begin)).where("physicalOffset >= begin").drop("begin")
    records = good.selectExpr("physicalOffset", "topic", "queueId", "queueOffset", "storeSize")
    joined = records.alias("r").join(units.alias("u"), ["physicalOffset"], "full_outer")
    what = (
        "case when u.queueOffset is null then 'no unit in its consume queue' "
        "when r.queueOffset is null then 'unit without a record' "
        "when u.topic = r.topic and (u.queueId <> r.queueId or u.queueOffset <> r.queueOffset) "
        "then 'unit of another queue or offset' when u.size <> r.storeSize then 'unit with another size' end"
    )
    return joined.selectExpr(
        *("coalesce(r.topic, u.topic) topic", "coalesce(r.queueId, u.queueId) queueId"),
        *("coalesce(r.queueOffset, u.queueOffset) queueOffset", "physicalOffset", f"{what} what"),
    ).where("what is not null")


@click.command("audit")
@click.option("--store", required=True, metavar="DIR", help="The store directory.")
@click.option("--topics", metavar="T[,T]", help="Only these topics.")
@click.option(
    "--crc/--no-crc", "checks_crc", default=True, show_default=True, help="Check the CRC of every body."
)
@output_options
def main(*, store: str, topics: str | None, checks_crc: bool, **options: Any) -> None:
    """Look for gaps, disorder and damage in a store, ours or of an official broker."""
    run_job(
        "audit",
        lambda spark: build(spark, store, topics=topics, checks_crc=checks_crc),
        check=lambda: check_store(store),
        **options,
    )


if __name__ == "__main__":
    main()
