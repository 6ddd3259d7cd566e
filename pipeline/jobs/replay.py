"""Sends messages again: `python -m pocketmq.pipeline.jobs.replay -n ADDR --topics T --to T2`.

Options choose a time range, a SQL filter over the message's columns, a rate, and a dry run that only counts. Each
copy has the id of its original in property `replayOf`. With `--queues keep` it is sent to the queue with the same id,
so the order within a queue is kept if the target has as many queues. With `--checkpoint DIR` an interrupted replay
continues: acknowledged batches are not sent again, and messages in flight are sent again with the same UNIQ_KEY.
Retry and dead-letter topics are replayed if they are named.
"""

from typing import TYPE_CHECKING, Any

import click
import msgspec

from ..errors import OptionError
from ..planning.access import NO_ACCESS_KEYS, Access, source_options
from ..planning.option_values import check_name_servers
from ..report.report import Report, Section
from .access_options import access_options
from .run import output_options, run_job, spark_error_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORIGIN = "replayOf"
KEEP, SPREAD = "keep", "spread"
BATCH_MESSAGES = 50_000


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """What to replay, and how. Times are epoch ms."""

    namesrv_addr: str
    topics: str
    target: str
    target_namesrv_addr: str | None = None
    starting_ms: int | None = None
    ending_ms: int | None = None
    where: str | None = None
    queues: str = KEEP
    rows_per_second: int | None = None
    checkpoint: str | None = None
    is_dry: bool = False
    access: Access = NO_ACCESS_KEYS

    def check(self) -> None:
        """`OptionError` for everything that can be checked without a connection."""
        check_name_servers("--namesrv", self.namesrv_addr)
        if self.target_namesrv_addr is not None:
            check_name_servers("--to-namesrv", self.target_namesrv_addr)
        begin, end = self.starting_ms, self.ending_ms
        if begin is not None and end is not None and begin >= end:
            raise OptionError(f"--from-ms must be less than --until-ms, which is {end}, got {begin}")


def build(spark: "SparkSession", replay: Replay) -> Report:
    """Send or count messages, and report how many."""
    from pyspark.sql import functions as F

    options = {"nameServer": replay.namesrv_addr, "subscribe": replay.topics, "startingOffsets": "earliest"}
    options["columns"] = "all"  # `--where` may name any of them
    options |= source_options(replay.access)
    if replay.starting_ms is not None:
        options |= {
            "startingTimestamp": str(replay.starting_ms),
            "startingOffsetsByTimestampStrategy": "latest",
        }
    is_stream = replay.checkpoint is not None and not replay.is_dry
    if replay.ending_ms is not None and not is_stream:
        options["endingTimestamp"] = str(replay.ending_ms)
    if is_stream:
        source = (
            spark.readStream.format("rocketmq")
            .options(**options, maxOffsetsPerTrigger=str(BATCH_MESSAGES))
            .load()
        )
    else:
        source = spark.read.format("rocketmq").options(**options).load()
    rows = source if replay.where is None else _filtered(source, replay.where)
    if replay.ending_ms is not None and is_stream:
        rows = rows.where(F.col("storeTimestamp") < F.timestamp_millis(F.lit(replay.ending_ms)))
    sent = _count(rows) if replay.is_dry else _send(rows, replay)
    verb = "would be sent" if replay.is_dry else "sent"
    counts = spark.createDataFrame([(replay.target, sent)], "target string, messages bigint")
    return Report(
        "Replay", f"{sent:,} messages {verb} to {replay.target}.", [Section("messages", "Messages", counts)]
    )


def _filtered(rows: "DataFrame", where: str) -> "DataFrame":
    """`OptionError` with the first line of Spark's error message about the condition."""
    from pyspark.errors import AnalysisException

    try:
        return rows.where(where)
    except AnalysisException as error:
        raise OptionError(f"--where: {spark_error_line(error)}") from error


def copies(rows: "DataFrame", queues: str) -> "DataFrame":
    """Messages read by the source as columns of the sink."""
    from pyspark.sql import functions as F

    from ..records.batch_encoder import RESERVED

    user_properties = F.map_filter(
        "properties", lambda name, _: ~name.isin(*sorted(RESERVED)) & (name != ORIGIN)
    )
    origin = F.create_map(F.lit(ORIGIN), F.col("msgId"))
    columns = [
        F.col("body"), F.col("keys"), F.col("tags"), F.col("flag"),
        F.map_concat(user_properties, origin).alias("properties"),
    ]  # fmt: skip
    return rows.select(*columns, *([F.col("queueId")] if queues == KEEP else []))


def _count(rows: "DataFrame") -> int:
    return rows.select("queueOffset").count()


def _send(rows: "DataFrame", replay: Replay) -> int:
    options = {"nameServer": replay.target_namesrv_addr or replay.namesrv_addr, "topic": replay.target}
    options |= source_options(replay.access)
    if replay.rows_per_second is not None:
        options["maxRowsPerSecond"] = str(replay.rows_per_second)
    prepared = copies(rows, replay.queues)
    if not rows.isStreaming:
        cached = prepared.cache()
        count = cached.count()
        cached.write.format("rocketmq").mode("append").options(**options).save()
        cached.unpersist()
        return count
    assert replay.checkpoint is not None
    writer = prepared.writeStream.format("rocketmq").options(**options)
    query = writer.option("checkpointLocation", replay.checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    return sum(progress.numInputRows for progress in query.recentProgress)


@click.command("replay")
@click.option(
    "-n", "--namesrv", "namesrv_addr", required=True, metavar="ADDR", help="The name server to read from."
)
@click.option("--topics", required=True, metavar="T[,T]", help="Topics to read.")
@click.option("--to", "target", required=True, metavar="TOPIC", help="The topic to send to.")
@click.option(
    "--to-namesrv",
    "target_namesrv_addr",
    metavar="ADDR",
    help="The name server to send to; default: the same.",
)
@click.option("--from-ms", "starting_ms", type=int, help="Store time to begin at, epoch ms.")
@click.option("--until-ms", "ending_ms", type=int, help="Store time to end before, epoch ms.")
@click.option("--where", metavar="SQL", help="A condition over the columns, such as \"tags = 'paid'\".")
@click.option("--queues", type=click.Choice([KEEP, SPREAD]), default=KEEP, show_default=True)
@click.option("--rows-per-second", type=click.IntRange(1), help="Limit of each task.")
@click.option("--checkpoint", metavar="DIR", help="Continue an interrupted replay.")
@click.option("--dry-run", "is_dry", is_flag=True, help="Only count the messages.")
@access_options
@output_options
def main(**options: Any) -> None:
    """Send messages again, to the same or another topic."""
    replay = Replay(**{name: options.pop(name) for name in Replay.__struct_fields__})
    run_job("replay", lambda spark: build(spark, replay), check=replay.check, **options)


if __name__ == "__main__":
    main()
