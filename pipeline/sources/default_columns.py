"""The columns of messages if the user gives no schema. Spark asks for them in a process of its own, so this imports
little."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import OptionError
from ..planning.kafka_names import SOURCE_COLUMNS, kafka_hint
from ..planning.option_values import OptionValues
from ..records.columns import LEAN, chosen_columns


def default_columns(
    options: Mapping[str, str], columns: dict[str, tuple[str, Any]], always: Sequence[str] = ()
) -> dict[str, tuple[str, Any]]:
    """The options `columns` and `includeProperties` choose them.

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
        meant = (f"{name}{kafka_hint(name, SOURCE_COLUMNS)}" for name in unknown)
        problem = "; ".join([error.problem, *(text for text in meant if ";" in text)])
        raise OptionError(error.option, problem) from error
