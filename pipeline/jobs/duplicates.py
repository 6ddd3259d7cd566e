"""Messages stored more than once: `python -m pocketmq.pipeline.jobs.duplicates --store DIR`.

By message id (a producer sent again after a lost reply, a sink repeated a batch) or by keys (`--by keys`). System
topics are skipped: half messages and delayed messages are stored there first, and in their own topic later. A copy in
a retry topic, or with reconsumeTimes, was delivered again on purpose: its level is `redelivered`, and it is not a
finding.
"""

from typing import TYPE_CHECKING, Any

import click

from ..report.report import Report, Section
from .inputs import IS_SYSTEM_TOPIC, MessageInput, input_options, messages, split_input_options
from .run import output_options, run_job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = (
    "topic string, queueId int, queueOffset bigint, msgId string, keys string, reconsumeTimes int, "
    "storeTimestamp timestamp"
)
LISTED_FINDINGS = 20


def build(spark: "SparkSession", source: MessageInput, *, by: str = "msgId") -> Report:
    """The report; `by` is msgId or keys."""
    found = duplicates(messages(spark, source, SCHEMA), by).cache()
    stored_twice = found.where("level = 'stored twice'")
    findings = [
        f"{row.topic}: {by} {row[by]} is stored {row.copies} times, {row.seconds:.1f} s apart: {row.places}"
        for row in stored_twice.limit(LISTED_FINDINGS).collect()
    ]
    return Report(
        "Duplicates", f"By {by}.", [Section("duplicates", "Stored more than once", found)], findings
    )


def duplicates(rows: "DataFrame", by: str) -> "DataFrame":
    """One row for each id or keys of several messages."""
    from pyspark.sql import functions as F

    location = F.concat_ws("/", "queueId", "queueOffset")
    return (
        rows.where(f"{by} is not null and not ({IS_SYSTEM_TOPIC})")
        .withColumn("home", F.expr("if(topic rlike '^%(RETRY|DLQ)%', '', topic)"))
        .groupBy(by)
        .agg(
            F.max("home").alias("topic"),
            F.count("*").alias("copies"),
            F.sum(F.expr("cast(home <> '' and reconsumeTimes = 0 as int)")).alias("firsts"),
            F.expr("cast(max(storeTimestamp) as double) - cast(min(storeTimestamp) as double)").alias(
                "seconds"
            ),
            F.concat_ws(", ", F.slice(F.sort_array(F.collect_list(location)), 1, 10)).alias("places"),
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
def main(*, by: str, **values: Any) -> None:
    """Find messages that are stored more than once."""
    source, options = split_input_options(values)
    run_job("duplicates", lambda spark: build(spark, source, by=by), check=source.check, **options)


if __name__ == "__main__":
    main()
