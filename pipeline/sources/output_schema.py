"""Record batches with the columns of the user's schema; all three sources use it."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ..errors import OptionError
from ..planning.kafka_names import SOURCE_COLUMNS, counterpart
from ..planning.option_values import OptionValues
from ..records.columns import LEAN, check_names, chosen_columns
from ..records.records import Records


def default_columns(
    options: Mapping[str, str], columns: dict[str, tuple[str, Any]], always: Sequence[str] = ()
) -> dict[str, tuple[str, Any]]:
    """The columns of messages if the user gives no schema: the options `columns` and `includeProperties` choose them.

    Spark asks for the schema first, so other options are not checked yet.
    """
    texts = {key.lower(): value for key, value in options.items()}
    includes = {"includeProperties": texts["includeproperties"]} if "includeproperties" in texts else {}
    includes_properties = OptionValues(includes).optional_flag("includeProperties")
    chosen = texts.get("columns", LEAN)
    try:
        return chosen_columns(columns, chosen, includes_properties=includes_properties, always=always)
    except OptionError as error:
        unknown = [name.strip() for name in chosen.split(",") if name.strip() not in columns]
        meant = (f"{name}{counterpart(name, SOURCE_COLUMNS)}" for name in unknown)
        raise OptionError("; ".join([str(error), *(text for text in meant if ";" in text)])) from error


class OutputSchema:
    """The columns of a user's schema; picklable.

    Spark compares the Arrow schema of a task's first batch with exactly this one. A later batch that differs kills the
    task.
    """

    def __init__(self, schema: StructType, columns: dict[str, tuple[str, Any]]) -> None:
        fields = [(field.name, field.dataType.simpleString()) for field in schema.fields]
        for name, _ in fields:
            if name not in columns and (meant := counterpart(name, SOURCE_COLUMNS)):
                raise OptionError(f"unknown column {name}{meant}")
        self.names = check_names(columns, fields)
        if len(set(self.names)) < len(self.names):
            raise OptionError(f"schema: names a column twice: {', '.join(self.names)}")
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
