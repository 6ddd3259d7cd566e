"""The columns of messages if the user gives no schema. Spark asks for them in a process of its own, so this imports
little."""

from collections.abc import Mapping, Sequence

from ...errors import OptionError
from ...tables.planning.option_values import OptionValues, names_in
from ...tables.planning.spelling import SOURCE_COLUMNS, kafka_hint
from ...tables.records.columns import ALL, LEAN, LEAN_COLUMNS, Columns


def default_columns(options: Mapping[str, str], columns: Columns, always: Sequence[str] = ()) -> Columns:
    """The columns that the option `columns` chooses, `lean`, `all`, or comma-separated names, in their fixed order.

    `includeProperties` adds or removes the map of properties. `always` is added to the lean columns. Spark asks for
    the schema first, so other options are not checked yet. `OptionError` for an unknown name.
    """
    texts = {key.lower(): value for key, value in options.items()}
    chosen = texts.get("columns", LEAN)
    if chosen.lower() == ALL:
        names = set(columns)
    elif chosen.lower() == LEAN:
        names = {*LEAN_COLUMNS, *always}
    else:
        names = set(names_in(chosen))
        unknown = [name for name in names if name not in columns]
        if unknown or not names:
            hints = (
                f"{name}{hint}" for name in sorted(unknown) if (hint := kafka_hint(name, SOURCE_COLUMNS))
            )
            problem = f"must be {LEAN}, {ALL} or names of {', '.join(columns)}, got {chosen!r:.100}"
            raise OptionError("option columns", "; ".join([problem, *hints]))
    if "includeproperties" in texts:
        values = OptionValues({"includeProperties": texts["includeproperties"]})
        is_wanted = values.flag("includeProperties", False)
        names = names | {"properties"} if is_wanted else names - {"properties"}
    return {name: kind for name, kind in columns.items() if name in names}
