"""How commands print what they saw: as a table, as one JSON value (`--json`), once or again and again (`--watch`).

The rule for JSON is the same in all commands: what is known at once is one value on one line, a list without anything
around it; what arrives one after the other (`tail`, `send`, `--watch`) is one value a line. Names are in snake_case.
"""

import asyncio
import functools
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Final, TypeVar

import click
import msgspec

from .mistakes import NumberRange, printable
from .options import client_options, run_command

if TYPE_CHECKING:
    from pocketmq.client import AdminClient

RowT = TypeVar("RowT", bound=msgspec.Struct)

json_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON."
)
_CLEAR: Final = "\x1b[H\x1b[2J"


_watch_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--watch",
    "watch_seconds",
    type=NumberRange(0.1, 3600),
    is_flag=False,
    flag_value=1.0,
    metavar="[SECONDS]",
    help="Look again every so many seconds, 1 without a number, until Ctrl-C.",
)


def echo_json(value: object) -> None:
    """One value on one line."""
    click.echo(msgspec.json.encode(value).decode())


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns as wide as they must be; numbers to the right."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    is_number = [all(isinstance(row[at], int | float | None) for row in rows) for at in range(len(headings))]
    lines = [_line(headings, widths, [bool(rows) and right for right in is_number])]
    lines += [_line(row, widths, is_number) for row in cells]
    return "\n".join(lines)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,.1f}" if isinstance(value, float) else printable(str(value))


def _line(cells: Sequence[str], widths: Sequence[int], to_right: Sequence[bool]) -> str:
    padded = (
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, to_right, strict=True)
    )
    return "  ".join(padded).rstrip()


def view(
    look: "Callable[Concatenate[AdminClient, ...], Awaitable[Sequence[RowT]]]",
    text: Callable[[Sequence[RowT]], str],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a command that prints what `look` sees: it has `--json`, `--watch`, the options of a client, and those that
    are keywords of `look`. The function itself is only its name and help."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def command(
            *, as_json: bool, watch_seconds: float | None, client: dict[str, Any], **options: Any
        ) -> None:
            async def run() -> None:
                from pocketmq.client import AdminClient  # not for `--help`

                async with AdminClient(**client) as admin:
                    await show(
                        lambda: look(admin, **options), text, as_json=as_json, watch_seconds=watch_seconds
                    )

            run_command(run())

        return json_option(_watch_option(client_options(command)))

    return decorate


async def show(
    look: Callable[[], Awaitable[Sequence[RowT]]],
    text: Callable[[Sequence[RowT]], str],
    *,
    as_json: bool,
    watch_seconds: float | None = None,
) -> None:
    """Print what `look` returns, once or every `watch_seconds`. On a terminal each look replaces the one before."""
    replaces = watch_seconds is not None and not as_json and sys.stdout.isatty()
    while True:
        rows = await look()
        if as_json:
            echo_json(rows)
        else:
            click.echo((_CLEAR if replaces else "") + text(rows))
        if watch_seconds is None:
            return
        await asyncio.sleep(watch_seconds)
