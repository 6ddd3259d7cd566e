"""A user's mistake: one line on standard error that a terminal only shows; and the exit codes of all commands.

    0    all is well
    1    the command found something, or something failed: damage, duplicates, sends that are refused
    2    the user can correct something: one line on standard error
    3    no server answers at the address
    130  Ctrl-C

`exec` ends with the code of its program. Imported by every command, so it imports little.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, NoReturn

import click

FAILED: Final = 1
USER_ERROR: Final = 2
UNREACHABLE: Final = 3
INTERRUPTED: Final = 130


@contextmanager
def ended_from_outside() -> Iterator[None]:
    """Inside, Ctrl-C ends the program with 130, and a closed standard output (`| head`) with 0 and no word."""
    try:
        yield
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The flush at exit must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


@contextmanager
def signals_handled(
    numbers: Iterable[int], handler: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    """Inside, these signals are handled by a function of ours."""
    former = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, before in former.items():
            signal.signal(number, before)


MAX_LINE_CHARS: Final = 1000


def refuse(text: object, *, program: str = "pocketmq", code: int = USER_ERROR) -> NoReturn:
    """Print the line and exit."""
    click.echo(f"{program}: {one_line(text)}", err=True)
    sys.exit(code)


def one_line(text: object) -> str:
    """The text on one line of limited length: what it repeats of the command line or of a server may be anything."""
    line = printable(" ".join(str(text).split()))
    if len(line) <= MAX_LINE_CHARS:
        return line
    half = MAX_LINE_CHARS // 2
    return f"{line[:half]} ... {line[-half:]}"


def printable(text: str) -> str:
    """The same text on one line, without what a terminal would obey: a line feed is shown as `\\n`."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text
    )


class NumberRange(click.FloatRange):
    """A range of numbers; click takes NaN for one that is within every range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if number != number:
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


class SpellingGroup(click.Group):
    """A click group whose error about an unknown command names those that are spelled nearly so."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches  # only needed after a spelling mistake

            close = get_close_matches(args[0][:100], self.list_commands(ctx), n=2)
            if not close:
                raise
            raise click.UsageError(f"{error.message} Did you mean {' or '.join(close)}?", ctx) from None
