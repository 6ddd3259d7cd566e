"""Messages to Parquet for repeated questions: `python -m pocketmq.pipeline.jobs.export --store DIR --to DIR`.

Folders are `date=YYYY-MM-DD/topic=...`; an export takes the place of an earlier one in its folder; a folder that holds
anything else is left alone. For one audit this does not pay: the store itself is scanned faster than Parquet is read.
"""

from typing import TYPE_CHECKING, Any

import click

from ..report.report import Report, Section
from .inputs import MessageInput, input_options, messages, split_input_options
from .run import check_replaceable, output_options, run_job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def build(spark: "SparkSession", place: MessageInput, folder: str) -> Report:
    """Write, and tell how many rows of each topic and day are there."""
    from pyspark.sql import functions as F

    rows = messages(spark, place).withColumn("date", F.to_date("storeTimestamp"))
    rows.write.mode("overwrite").partitionBy("date", "topic").parquet(folder)
    # Named, for nothing can be learnt from a folder without files, and a topic called 7 is no number.
    written = spark.read.schema(rows.schema).parquet(folder)
    counts = written.groupBy("topic", "date").count().orderBy("topic", "date")
    return Report("Export", f"To {folder}.", [Section("rows", "Rows", counts)])


@click.command("export")
@input_options
@click.option("--to", "folder", required=True, metavar="DIR", help="The folder of Parquet files.")
@output_options
def main(*, folder: str, **given: Any) -> None:
    """Write messages as Parquet, by day and topic."""
    place, options = split_input_options(given)

    def check() -> None:
        place.check()
        check_replaceable("--to", folder)

    run_job("export", lambda spark: build(spark, place, folder), check=check, **options)


if __name__ == "__main__":
    main()
