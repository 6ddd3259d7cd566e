"""The data source `rocketmq`: topics as data frames, and data frames as messages.

    spark.read.format("rocketmq").option("rocketmq.namesrv.addr", "127.0.0.1:9876").option("subscribe", "Orders").load()

An installed PocketMQ is found by Spark itself (`pyspark_rocketmq`). Two limits of Spark's Python sources show here.
Spark prunes no columns, so the default is a lean schema, and fewer columns save more. And a reader that accepts
filters fails if `spark.sql.python.filterPushdown.enabled` is false, so `pushdown=true` is only for sessions that set
it (`session/session.py` does).
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from ...errors import OptionError
from ...tables.planning.option_values import plain_options
from ...tables.planning.spark_processes import freeze_imports
from ...tables.planning.topic_options import read_source_options
from ...tables.records.columns import MESSAGE_COLUMNS, ddl
from .default_columns import default_columns

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter, DataSourceStreamReader, DataSourceWriter


class RocketMQSource(DataSource):
    """Format `rocketmq`. Readers and writers are imported on use: Spark asks for the name and the schema in processes
    of their own."""

    @classmethod
    def name(cls) -> str:
        return "rocketmq"

    def schema(self) -> str:
        freeze_imports()
        return ddl(default_columns(plain_options(self.options), MESSAGE_COLUMNS))

    def reader(self, schema: StructType) -> DataSourceReader:
        from .topic_reader import FilteringReader, TopicReader

        freeze_imports()
        options = read_source_options(plain_options(self.options), is_stream=False)
        kind = FilteringReader if options.pushes_down else TopicReader
        return kind(options, schema)

    def streamReader(self, schema: StructType) -> "DataSourceStreamReader":
        from .topic_stream import FailingStreamReader, TopicStreamReader

        try:
            return TopicStreamReader(read_source_options(plain_options(self.options), is_stream=True), schema)
        except OptionError as error:
            return FailingStreamReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> "DataSourceWriter":
        from ..sink.topic_writer import TopicWriter

        freeze_imports()
        return TopicWriter(plain_options(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> "DataSourceStreamArrowWriter":
        from ..sink.topic_writer import TopicStreamWriter

        return TopicStreamWriter(plain_options(self.options), schema, overwrite=overwrite)
