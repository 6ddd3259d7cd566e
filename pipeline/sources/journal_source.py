"""The data source `pocketmq-journal`: the requests and replies of a broker, recorded with `--journal DIR`.

    spark.read.format("pocketmq-journal").load("/path/to/journal")

One task for each file. A torn end is left out with a warning; a newer form is
refused. What can be made of it: `behaviour/job.py`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ..files.journal_rows import column, journal_files, read_journal
from ..planning.option_values import OptionValues, canonical_options, plain_options
from ..records.columns import JOURNAL_COLUMNS, ddl
from .output_schema import OutputSchema

_NAMES: Final = ("path",)


class JournalSource(DataSource):
    """Format `pocketmq-journal`."""

    @classmethod
    def name(cls) -> str:
        return "pocketmq-journal"

    def schema(self) -> str:
        return ddl(JOURNAL_COLUMNS)

    def reader(self, schema: StructType) -> DataSourceReader:
        values = OptionValues(canonical_options(plain_options(self.options), _NAMES, {}))
        return JournalReader(values.required("path", "/path/to/journal"), schema)


class JournalReader(DataSourceReader):
    """Reads the files that exist when the read is planned."""

    def __init__(self, path: str, schema: StructType) -> None:
        self._path = path
        self._output = OutputSchema(schema, JOURNAL_COLUMNS)

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(str(file)) for file in journal_files(Path(self._path))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        for rows in read_journal(Path(partition.value)):
            if rows:
                yield self._output.batch([column(rows, name) for name in self._output.names])
