"""Messages to Parquet for repeated questions: `python -m pocketmq.pipeline.export_job --store DIR --to DIR`.

Folders are `date=YYYY-MM-DD/topic=...`; a second export of the same place writes the same rows over the first. For one
audit this does not pay: the store itself is scanned faster than Parquet is read. Next: `replay_job.py`.
"""

from typing import TYPE_CHECKING, Any

import click

from .job_output import Report, Section, output_options, run_job
from .messages_of import Place, messages, place_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def build(spark: "SparkSession", place: Place, folder: str) -> Report:
    """Write, and tell how many rows of each topic and day are there."""
    from pyspark.sql import functions as F

    rows = messages(spark, place).withColumn("date", F.to_date("storeTimestamp"))
    rows.write.mode("overwrite").partitionBy("date", "topic").parquet(folder)
    counts = spark.read.parquet(folder).groupBy("topic", "date").count().orderBy("topic", "date")
    return Report("Export", f"To {folder}.", [Section("rows", "Rows", counts)])


@click.command("export")
@place_options
@click.option("--to", "folder", required=True, metavar="DIR", help="The folder of Parquet files.")
@output_options
def main(
    *, store: str | None, namesrv_addr: str | None, topics: str | None, folder: str, **options: Any
) -> None:
    """Write messages as Parquet, by day and topic."""
    place = Place(store=store, namesrv_addr=namesrv_addr, topics=topics)
    run_job("export", lambda spark: build(spark, place, folder), **options)


if __name__ == "__main__":
    main()
