"""The data source `pocketmq-journal`: the requests and replies of a broker, recorded with `--journal DIR`.

    spark.read.format("pocketmq-journal").load("/path/to/journal")

One task for each file. Option `paths` names the journals of several brokers, as for stores. A torn end is left out with
a warning; a newer form is refused. What can be made of it: `behaviour/job.py`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pocketmq.protocol.journal_frames import SUFFIX
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ..errors import OptionError
from ..files.journal_rows import column, journal_files, read_journal
from ..files.remote_copies import Location, is_url, temporary_copies, with_urls
from ..planning.option_values import OptionValues, canonical_options
from ..planning.worker_memory import exempt_loaded_modules
from ..records.columns import JOURNAL_COLUMNS, ddl
from .located_readers import SeveralReaders, read_paths
from .output_schema import OutputSchema

_NAMES: Final = ("path",)


class JournalSource(DataSource):
    """Format `pocketmq-journal`."""

    @classmethod
    def name(cls) -> str:
        return "pocketmq-journal"

    def schema(self) -> str:
        exempt_loaded_modules()
        return ddl(JOURNAL_COLUMNS)

    def reader(self, schema: StructType) -> DataSourceReader:
        paths, others = read_paths(self.options)
        values = OptionValues(canonical_options(others, _NAMES, {}))
        if paths is None:
            return JournalReader(values.required("path", "/path/to/journal"), schema)
        return SeveralReaders({name: JournalReader(path, schema) for name, path in paths.items()})


class JournalReader(DataSourceReader):
    """Reads the files that exist when the read is planned."""

    def __init__(self, path: str, schema: StructType) -> None:
        self._path = path
        self._output = OutputSchema(schema, JOURNAL_COLUMNS)

    def partitions(self) -> list[InputPartition]:
        exempt_loaded_modules()
        if not is_url(self._path):
            return [InputPartition(str(file)) for file in journal_files(Path(self._path))]
        location = Location(self._path)
        names = sorted(name for name in location.sizes("") if name.endswith(SUFFIX))
        if not names:
            raise OptionError(f"option path: {location.url} has no file *{SUFFIX}, and so is no journal")
        return [InputPartition(name) for name in names]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if not is_url(self._path):
            yield from self._batches(Path(partition.value))
            return
        location = Location(self._path)
        with temporary_copies() as folder:
            for batch in self._batches(location.copy_whole(partition.value, folder)):
                yield with_urls(batch, str(folder), location.url)

    def _batches(self, file: Path) -> Iterator[Any]:
        exempt_loaded_modules()
        for rows in read_journal(file):
            if rows:
                yield self._output.batch([column(rows, name) for name in self._output.names])
