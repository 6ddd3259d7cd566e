"""The data source `pocketmq-journal`: the requests and replies of a broker, recorded with `--journal DIR`.

    spark.read.format("pocketmq-journal").load("/path/to/journal")

One task for each file. Option `paths` names the journals of several brokers, as for stores. A torn end is left out with
a warning; a newer form is refused. What can be made of it: `jobs/behaviour/job.py`.
"""

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from ...tables.arrow.journal_table import journal_table
from ...tables.planning.option_values import OptionValues, canonical_options
from ...tables.planning.spark_processes import freeze_imports
from ...tables.records.columns import JOURNAL_COLUMNS, ddl
from .task_reader import TaskReader, read_paths


class JournalSource(DataSource):
    """Format `pocketmq-journal`."""

    @classmethod
    def name(cls) -> str:
        return "pocketmq-journal"

    def schema(self) -> str:
        freeze_imports()
        return ddl(JOURNAL_COLUMNS)

    def reader(self, schema: StructType) -> DataSourceReader:
        paths, others = read_paths(self.options)
        values = OptionValues(canonical_options(others, ("path",), {}))
        places = [values.required("path", "/path/to/journal")] if paths is None else list(paths.values())
        return TaskReader(journal_table(places), schema, JOURNAL_COLUMNS)
