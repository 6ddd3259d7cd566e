"""Record batches with the columns of the user's schema; all three sources use it."""

from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ...errors import OptionError
from ...tables.planning.spelling import SOURCE_COLUMNS, kafka_hint
from ...tables.records.columns import Columns
from ...tables.records.records import Records


class OutputSchema:
    """The columns of a user's schema; picklable.

    Spark compares the Arrow schema of a task's first batch with exactly this one. A later batch that differs kills the
    task.
    """

    def __init__(self, schema: StructType, columns: Columns) -> None:
        self.names = [field.name for field in schema.fields]
        for field in schema.fields:
            name, kind = field.name, field.dataType.simpleString()
            if name not in columns:
                meant = kafka_hint(name, SOURCE_COLUMNS) or f"; the columns are {', '.join(columns)}"
                raise OptionError(f"unknown column {name}", meant)
            if kind != columns[name][0]:
                raise OptionError(f"column {name}", f"must be {columns[name][0]}, got {kind}")
        if len(set(self.names)) < len(self.names):
            raise OptionError("schema", f": names a column twice: {', '.join(self.names)}")
        self.arrow = to_arrow_schema(schema, timezone="UTC")

    def batch(self, arrays: list[Any]) -> Any:
        """One record batch of arrays in the order of `names`."""
        columns = [
            array if array.type == field.type else array.cast(field.type)
            for array, field in zip(arrays, self.arrow, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.arrow)

    def batch_of(self, records: Records) -> Any:
        """One record batch of messages."""
        return self.batch(records.columns(self.names))
