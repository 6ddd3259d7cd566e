"""Which rows a reader wants, as one Arrow expression, and what follows from it before anything is read.

A condition is made of `filters` and of times. Arrow itself decides what can be left out: a part of a table is described
by an expression that is true of all its rows (a guarantee), and Arrow simplifies the condition under it.
"""

import itertools
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import OptionError
from ..records.columns import TIMESTAMP
from ..records.scans import Flags

ROW: Final = "__row"
_WORD: Final = re.compile(r"\w+")

Moment = datetime | int
"""A time: a datetime (UTC if it has no zone), or epoch ms."""


def timestamp(option: str, moment: Moment) -> Any:
    """A moment as an Arrow scalar. `OptionError` for anything else."""
    if isinstance(moment, datetime):
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return pa.scalar(aware, TIMESTAMP)
    if isinstance(moment, int) and not isinstance(moment, bool) and moment >= 0:
        return pa.scalar(moment * 1000, TIMESTAMP)
    raise OptionError(option, f"must be a datetime or epoch ms, got {moment!r}")


def condition_of(
    schema: Any, filters: Any = None, since: Moment | None = None, until: Moment | None = None
) -> Any:
    """One expression, or None if every row is wanted.

    `filters` is an expression (`pyarrow.compute.field("tags") == "paid"`), or a list of (column, operator, value) as in
    `pyarrow.parquet.read_table`. `since` and `until` limit storeTimestamp: since <= storeTimestamp < until.
    `OptionError` for an unknown column, operator or type.
    """
    condition = _expression(schema, filters)
    for option, moment in (("since", since), ("until", until)):
        if moment is not None:
            field, value = pc.field("storeTimestamp"), timestamp(option, moment)
            bound = field >= value if option == "since" else field < value
            condition = bound if condition is None else condition & bound
    return condition


def _expression(schema: Any, filters: Any) -> Any:
    if filters is None or (isinstance(filters, list) and not filters):
        return None
    if not isinstance(filters, pc.Expression):
        from pyarrow.parquet import filters_to_expression

        try:
            filters = filters_to_expression(filters)
        except (TypeError, ValueError) as error:
            raise OptionError(
                "filters",
                f"must be an expression or a list such as [('tags', '=', 'paid')], got {filters!r}: {error}",
            ) from error
    try:
        schema.empty_table().filter(filters)
    except (pa.ArrowException, ValueError, NotImplementedError) as error:
        raise OptionError(
            "filters", f": {_reason(str(error))}; the columns are {', '.join(schema.names)}"
        ) from error
    is_constant = not columns_in(filters, schema.names) and "FieldPath(" not in str(filters)
    return None if is_constant and _is_true(filters) else filters


def _is_true(constant: Any) -> bool:
    """Whether an expression without columns holds: Arrow finds no part of a store that meets `scalar(True)`."""
    return bool(pa.table({"row": [0]}).filter(constant).num_rows)


def _reason(text: str) -> str:
    """What Arrow says about an expression, without the names of its own parts."""
    unknown = re.match(r"No match for FieldRef\.Name\(([^)]*)\)", text)
    if unknown is not None:
        return f"unknown column {unknown[1]}"
    types = re.search(r"no kernel matching input types \((.*), (.*)\)", text)
    if types is not None:
        return f"a value does not have the type of its column: {types[1]} and {types[2]} cannot be compared"
    return text.partition("\n")[0]


def columns_in(condition: Any, names: Sequence[str]) -> list[str]:
    """The columns that a condition may use. Text in it that looks like a name counts as well, which does no harm."""
    words = set(_WORD.findall(str(condition)))
    return [name for name in names if name in words]


def rows_matching(condition: Any, batch: Any) -> Flags:
    """Which rows of a batch meet the condition."""
    numbered = batch.append_column(ROW, pa.array(range(batch.num_rows), pa.int64()))
    mask = np.zeros(batch.num_rows, dtype=np.bool_)
    mask[np.asarray(numbered.filter(condition).column(ROW))] = True
    return mask


def possible_parts(condition: Any, schema: Any, guarantees: Sequence[Any]) -> list[int]:
    """The numbers of the parts that may have a row that meets the condition. Each part has its guarantee."""
    if condition is None:
        return list(range(len(guarantees)))
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    kind, files = ds.IpcFileFormat(), LocalFileSystem()
    parts = [
        kind.make_fragment(str(number), files, partition_expression=guarantee)
        for number, guarantee in enumerate(guarantees)
    ]
    # The fragments stand for files that do not exist; Arrow compares expressions and opens none.
    table = ds.FileSystemDataset(parts, schema, kind, files)
    return [int(part.path) for part in table.get_fragments(filter=condition)]


def topics_wanted(condition: Any, schema: Any, known: Sequence[str]) -> frozenset[str] | None:
    """The topics to which a condition limits its rows; None if topics besides the known ones may have such rows.

    The condition names topics exactly if no row can meet it whose topic lies between two of those that are left.
    """
    if condition is None or not known:
        return None
    topic = pc.field("topic")
    left = [known[number] for number in possible_parts(condition, schema, [topic == name for name in known])]
    if len(left) == len(known):
        return None
    left.sort()
    between = [(topic > low) & (topic < high) for low, high in itertools.pairwise(left)]
    outside = [topic < left[0], topic > left[-1]] if left else [pc.scalar(True)]
    nulls = [pc.is_null(topic)]
    return None if possible_parts(condition, schema, [*between, *outside, *nulls]) else frozenset(left)
