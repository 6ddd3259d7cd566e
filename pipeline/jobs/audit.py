"""Order, gaps and damage of a store: `python -m pocketmq.pipeline.jobs.audit --store DIR`.

    damaged    bytes that are no record, or records whose body is not the one whose CRC is stored
    gaps       queue offsets that no record has, and offsets that several have
    order      records whose place in the log contradicts their queue offset
    index      entries of consume queues without their record, and records without their entry

The cheap question comes first: a queue whose count is last - first + 1, with as many different offsets, has no gap, and
only the others are sorted. Headers alone are read but for the CRC (`--no-crc` leaves that out). Exit code 2 where
something is found.
"""

from typing import TYPE_CHECKING, Any

import click

from ..report.report import Report, Section, counted
from .inputs import check_store
from .run import output_options, run_job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HEADERS = (
    "topic string, queueId int, queueOffset bigint, physicalOffset bigint, storeSize int, sysFlag int, "
    "file string, status string"
)
OF_QUEUE = ("topic", "queueId")
_NOT_IN_QUEUES = "(sysFlag & 12) in (4, 12)"
"""Prepared and rolled back: in the log, never in a queue."""


def build(spark: "SparkSession", store: str, *, topics: str | None = None, checks_crc: bool = True) -> Report:
    """The report over a store directory."""
    options = {"path": store, "onCorrupt": "report", "verifyCrc": str(checks_crc).lower()}
    if topics is not None:
        options["topics"] = topics
    found = spark.read.format("rocketmq-store").schema(HEADERS).options(**options).load().cache()
    damaged = found.where("status <> 'ok'").select(
        "file", "physicalOffset", "status", "topic", "queueId", "queueOffset"
    )
    # A record whose body is damaged still stands in its queue.
    good = found.where("status in ('ok', 'bad crc')").where(f"not {_NOT_IN_QUEUES}")
    gaps = gaps_of(good)
    disorder = disorder_of(good)
    index = index_of(spark, good, options)
    queues = queues_of(good)
    sections = [
        Section("damaged", "Damaged records", damaged),
        Section("gaps", "Gaps and offsets that came twice", gaps),
        Section("order", "Records out of order", disorder),
        Section("index", "Consume queues against the log", index),
        Section("queues", "Queues", queues),
    ]
    told = [
        *(f"{row.status} at log position {row.physicalOffset} ({row.file})" for row in damaged.limit(20).collect()),
        *(f"{row.topic} queue {row.queueId}: {row.what}, {counted(row['count'], 'message')} from offset {row.first}"
          for row in gaps.limit(20).collect()),
        *(f"{row.topic} queue {row.queueId}: offset {row.queueOffset} stands before {row.previous} in the log"
          for row in disorder.limit(20).collect()),
        *(f"{row.topic} queue {row.queueId} offset {row.queueOffset}: {row.what}" for row in index.limit(20).collect()),
    ]  # fmt: skip
    return Report("Store audit", f"Store {store}.", sections, told)


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
    """(topic, queueId, what, first, count): what is missing or there twice, of the queues where the count is wrong."""
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
    """Records that lie in the log before one of a lower offset of their queue."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    of_queue = Window.partitionBy(*OF_QUEUE).orderBy("physicalOffset")
    return (
        good.withColumn("previous", F.lag("queueOffset").over(of_queue))
        .where("queueOffset < previous")
        .select(*OF_QUEUE, "queueOffset", "previous", "physicalOffset")
    )


def index_of(spark: "SparkSession", good: "DataFrame", options: dict[str, str]) -> "DataFrame":
    """Entries and records that do not point at each other. Entries of deleted log files are no fault."""
    from pyspark.sql import functions as F

    chosen = {name: value for name, value in options.items() if name in ("path", "topics")}
    entries = spark.read.format("rocketmq-store").options(**chosen, table="consumequeue").load()
    begin = good.agg(F.min("physicalOffset").alias("begin"))
    entries = entries.crossJoin(F.broadcast(begin)).where("physicalOffset >= begin").drop("begin")
    records = good.selectExpr("physicalOffset", "topic", "queueId", "queueOffset", "storeSize")
    joined = records.alias("r").join(entries.alias("e"), ["physicalOffset"], "full_outer")
    what = (
        "case when e.queueOffset is null then 'no entry in its consume queue' "
        "when r.queueOffset is null then 'entry without a record' "
        "when e.topic = r.topic and (e.queueId <> r.queueId or e.queueOffset <> r.queueOffset) "
        "then 'entry at another place' when e.size <> r.storeSize then 'entry with another size' end"
    )
    return joined.selectExpr(
        *("coalesce(r.topic, e.topic) topic", "coalesce(r.queueId, e.queueId) queueId"),
        *("coalesce(r.queueOffset, e.queueOffset) queueOffset", "physicalOffset", f"{what} what"),
    ).where("what is not null")


@click.command("audit")
@click.option("--store", required=True, metavar="DIR", help="The store directory.")
@click.option("--topics", metavar="T[,T]", help="These topics alone.")
@click.option("--crc/--no-crc", "checks_crc", default=True, show_default=True, help="Check every body.")
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
