"""How values and column names are written for people, on the terminal and on the page. Pure; no Spark."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

LONG: Final = 44
"""Cells of more characters than this may be broken into lines."""
LONGEST_BODY: Final = 200
"""Characters of a body that are shown."""


def shared_columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns in which all rows (two or more) have the same text or time; none if that is true of all columns."""
    names = list(rows[0])
    shared = [name for name in names if len(rows) > 1 and _is_shared([row.get(name) for row in rows])]
    return shared if len(shared) < len(names) else []


def shared_values_line(rows: Sequence[Mapping[str, Any]], shared: Sequence[str]) -> str:
    """The line with the values that all rows share."""
    return f"All rows: {', '.join(f'{column_title(name)} {format_value(rows[0][name])}' for name in shared)}."


def _is_shared(values: Sequence[Any]) -> bool:
    is_text = values[0] is None or isinstance(values[0], str | datetime)
    return is_text and all(value == values[0] for value in values)


def column_title(name: str) -> str:
    """messagesPerSecond as `messages per second`, which can be broken into lines."""
    return re.sub(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[0-9])(?=[A-Z])", " ", name).lower()


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def are_numbers(values: Sequence[Any]) -> bool:
    return any(map(is_number, values)) and all(value is None or is_number(value) for value in values)


def format_value(value: Any) -> str:
    """A value as readable text."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"
    if isinstance(value, int | Decimal):
        return f"{value:,}"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    if isinstance(value, bytes | bytearray):
        return shortened(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(format_value, value))
    return str(value)


def shortened(value: bytes | bytearray) -> str:
    """The beginning of a body as text in one line."""
    text = " ".join(bytes(value[: LONGEST_BODY * 4]).decode("utf-8", "replace").split())
    return text if len(text) <= LONGEST_BODY else f"{text[:LONGEST_BODY]}..."
