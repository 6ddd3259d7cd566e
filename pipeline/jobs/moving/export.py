"""Messages to Parquet, for repeated queries: `pocketmq pipeline export --store DIR --to DIR`.

Folders are `date=YYYY-MM-DD/topic=...`. An export replaces an earlier export in the folder and refuses a folder that
holds anything else: what an export has written has a marker file (`report/output_folders.py`). A single query is
faster on the store itself than on Parquet.
"""

from typing import TYPE_CHECKING, Any

import click

from ...tables.files.locations import absolute
from ..answers.inputs import UTC_DAY, input_options
from ..answers.on_engine import check_brokers, note_missing_topics
from ..answers.run import output_options, run_job
from ..report.output_folders import replaced, write_mode
from ..report.report import Report, Section
from ..sql.message_input import MessageInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def build(spark: "SparkSession", source: MessageInput, folder: str) -> Report:
    """Write the files, and report the rows of each topic and day."""
    from pyspark.sql import functions as F

    from ..sql.spark_engine import SparkFrame

    folder = absolute(folder)
    source.check()
    reader = spark.read.format(source.format).options(**source.reader_options(), columns="all")
    rows = reader.load().withColumn("date", F.expr(UTC_DAY))
    with replaced("--to", folder) as mode:
        rows.write.mode(mode).partitionBy("date", "topic").parquet(folder)
    # With a schema, because Spark cannot infer one from an empty folder, and would read a topic named 7 as a number.
    written = spark.read.schema(rows.schema).parquet(folder)
    counts = written.groupBy("topic", "date").count().orderBy("topic", "date")
    return Report("Export", f"To {folder}.", [Section("rows", "Rows", SparkFrame(counts))])


@click.command("export")
@input_options
@click.option("--to", "folder", required=True, metavar="DIR", help="The folder of Parquet files.")
@output_options
def main(*, folder: str, source: MessageInput, **options: Any) -> None:
    """Write messages as Parquet, by day and topic."""

    def check() -> None:
        source.check_topics()
        note_missing_topics(source)
        write_mode("--to", absolute(folder))
        check_brokers(source)

    run_job("export", lambda spark: build(spark, source, folder), check=check, **options)
