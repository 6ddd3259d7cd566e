"""Readable tables on a terminal. No Spark.

Values that all rows share are printed once, above the table. A table that is wider than the terminal is printed row by
row, with a line for each column. In a file or a pipe a table has its full width.
"""

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from .cells import column_title, format_value, is_number, shared_columns, shared_values_line

if TYPE_CHECKING:
    from rich.console import Console

FILE_WIDTH: Final = 1_000_000
"""Width of an output that is not a terminal: nothing is cut or wrapped."""


def console() -> "Console":
    """Standard output, with the width of the terminal."""
    from rich.console import Console

    class Terminal(Console):
        """Ends quietly, with the exit code of the job, if the reader of the output closes it (`| head`)."""

        def on_broken_pipe(self) -> None:
            with contextlib.suppress(SystemExit):
                super().on_broken_pipe()

    terminal = Terminal(highlight=False, markup=False)
    return terminal if terminal.is_terminal else Terminal(highlight=False, markup=False, width=FILE_WIDTH)


def print_table(terminal: "Console", title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """One table, as a table or row by row."""
    from rich.table import Table
    from rich.text import Text

    terminal.print()
    terminal.print(Text(title, style="bold"))
    if not rows:
        terminal.print("none")
        return
    shared = shared_columns(rows)
    if shared:
        terminal.print(shared_values_line(rows, shared))
    names = [name for name in rows[0] if name not in shared]
    cells = [[format_value(row[name]) for name in names] for row in rows]
    # Column titles may be broken between words, values may not.
    widths = [
        max(map(len, (*column_title(name).split(), *column)))
        for name, column in zip(names, zip(*cells, strict=True), strict=True)
    ]
    if sum(widths) + 3 * len(widths) + 1 <= terminal.width:
        table = Table()
        for name, width in zip(names, widths, strict=True):
            is_right = any(is_number(row[name]) for row in rows)
            table.add_column(
                Text(column_title(name)), justify="right" if is_right else "left", min_width=width
            )
        for row_cells in cells:
            table.add_row(*map(Text, row_cells))
        terminal.print(table)
        return
    most = max(len(column_title(name)) for name in names)
    for row_cells in cells:
        terminal.print("-" * min(terminal.width, 40))
        for name, cell in zip(names, row_cells, strict=True):
            terminal.print(Text(f"{column_title(name):{most}}  {cell}"))
