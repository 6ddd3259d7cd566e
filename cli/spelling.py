"""Which command a misspelt name may mean."""

from collections.abc import Iterable

import click


def meant(error: click.UsageError, ctx: click.Context, name: str, known: Iterable[str]) -> click.UsageError:
    """An error about an unknown command, with the names that are spelled nearly so."""
    from difflib import get_close_matches  # only needed after a spelling mistake

    close = get_close_matches(name, list(known), n=2)
    return click.UsageError(f"{error.message} Did you mean {' or '.join(close)}?", ctx) if close else error
