"""Messages stored more than once: `python -m pocketmq.pipeline.jobs.duplicates --store DIR`.

By message id (a producer that sent again after a lost answer, a sink that repeated a batch) or by keys (`--by keys`).
System topics are left out: half messages and delayed ones stand there under another topic and come again. A copy in a
retry topic, or with reconsumeTimes, was delivered again on purpose: its level says `redelivered`. Exit code 2 where
something is found that is not.
"""

from typing import TYPE_CHECKING, Any

import click

from ..report.report import Report, Section
from .inputs import SYSTEM_TOPICS, MessageInput, input_options, messages, split_input_options
from .run import output_options, run_job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = (
    "topic string, queueId int, queueOffset bigint, msgId string, keys string, reconsumeTimes int, "
    "storeTimestamp timestamp"
)
TOLD = 20


def build(spark: "SparkSession", place: MessageInput, *, by: str = "msgId") -> Report:
    """The report; `by` is msgId or keys."""
    found = duplicates(messages(spark, place, SCHEMA), by).cache()
    stored_twice = found.where("level = 'stored twice'")
    told = [
        f"{row.topic}: {by} {row[by]} is stored {row.copies} times, {row.seconds:.1f} s apart: {row.places}"
        for row in stored_twice.limit(TOLD).collect()
    ]
    return Report("Duplicates", f"By {by}.", [Section("duplicates", "Stored more than once", found)], told)


def duplicates(rows: "DataFrame", by: str) -> "DataFrame":
    """One row for each id that several messages have."""
    from pyspark.sql import functions as F

    place = F.concat_ws("/", "queueId", "queueOffset")
    return (
        rows.where(f"{by} is not null and not ({SYSTEM_TOPICS})")
        .withColumn("home", F.expr("if(topic rlike '^%(RETRY|DLQ)%', '', topic)"))
        .groupBy(by)
        .agg(
            F.max("home").alias("topic"),
            F.count("*").alias("copies"),
            F.sum(F.expr("cast(home <> '' and reconsumeTimes = 0 as int)")).alias("firsts"),
            F.expr("cast(max(storeTimestamp) as double) - cast(min(storeTimestamp) as double)").alias(
                "seconds"
            ),
            F.concat_ws(", ", F.slice(F.sort_array(F.collect_list(place)), 1, 10)).alias("places"),
        )
        .where("copies > 1")
        .withColumn("level", F.expr("if(firsts > 1, 'stored twice', 'redelivered')"))
        .select(by, "topic", "level", "copies", "seconds", "places")
        .orderBy("level", "topic", by)
    )


@click.command("duplicates")
@input_options
@click.option("--by", type=click.Choice(["msgId", "keys"]), default="msgId", show_default=True)
@output_options
def main(*, by: str, **given: Any) -> None:
    """Find messages that are stored more than once."""
    place, options = split_input_options(given)
    run_job("duplicates", lambda spark: build(spark, place, by=by), check=place.check, **options)


if __name__ == "__main__":
    main()
