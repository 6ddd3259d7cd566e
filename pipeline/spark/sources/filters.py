"""Filters of a Spark query as one Arrow expression, which every row that meets the filters meets, and perhaps more."""

import functools
import operator
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

_COMPARISONS: Final[dict[type[Filter], Callable[[Any, Any], Any]]] = {
    EqualTo: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}


def condition_of(filters: Iterable[Filter], schema: Any) -> Any:
    """None if no filter says anything: other kinds, and values of another type than the column's, are left out."""
    expressions = [one for each in filters if (one := _expression(each, schema)) is not None]
    return functools.reduce(operator.and_, expressions) if expressions else None


def _expression(filtered: Filter, schema: Any) -> Any:
    name = ".".join(getattr(filtered, "attribute", ()))
    if name not in schema.names:
        return None
    kind = schema.field(name).type
    try:
        if isinstance(filtered, In):
            return pc.field(name).isin(pa.array(map(_value, filtered.value), type=kind))
        compare = _COMPARISONS.get(type(filtered))
        value = getattr(filtered, "value", None)
        return None if compare is None else compare(pc.field(name), pa.scalar(_value(value), type=kind))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return None


def _value(value: Any) -> Any:
    """A time without a zone is UTC, as in sessions of this package."""
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value
