"""Tables on a terminal that can be read there: what all rows share stands once, above; a table that is wider than the
terminal is written row by row, a line for each column. Into a file or a pipe tables go as wide as they are. No Spark.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from .cells import column_title, format_value, is_number, shared_columns, shared_values_line

if TYPE_CHECKING:
    from rich.console import Console

FILE_WIDTH: Final = 1_000_000
"""Columns of what is no terminal: nothing is cut or wrapped."""


def console() -> "Console":
    """Standard output, as wide as it is."""
    from rich.console import Console

    told = Console(highlight=False, markup=False)
    return told if told.is_terminal else Console(highlight=False, markup=False, width=FILE_WIDTH)


def print_table(told: "Console", title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """One table, as a table or row by row."""
    from rich.table import Table
    from rich.text import Text

    told.print()
    told.print(Text(title, style="bold"))
    if not rows:
        told.print("none")
        return
    shared = shared_columns(rows)
    if shared:
        told.print(shared_values_line(rows, shared))
    names = [name for name in rows[0] if name not in shared]
    cells = [[format_value(row[name]) for name in names] for row in rows]
    # Heads may be broken between words, what stands below them may not.
    widths = [
        max(map(len, (*column_title(name).split(), *column)))
        for name, column in zip(names, zip(*cells, strict=True), strict=True)
    ]
    if sum(widths) + 3 * len(widths) + 1 <= told.width:
        table = Table()
        for name, width in zip(names, widths, strict=True):
            is_right = any(is_number(row[name]) for row in rows)
            table.add_column(
                Text(column_title(name)), justify="right" if is_right else "left", min_width=width
            )
        for row_cells in cells:
            table.add_row(*map(Text, row_cells))
        told.print(table)
        return
    most = max(len(column_title(name)) for name in names)
    for row_cells in cells:
        told.print("-" * min(told.width, 40))
        for name, cell in zip(names, row_cells, strict=True):
            told.print(Text(f"{column_title(name):{most}}  {cell}"))
