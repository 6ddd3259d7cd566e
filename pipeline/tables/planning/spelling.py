"""The name that a misspelt one may mean: of a topic or a group."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, existing: Iterable[str]) -> str:
    """The existing name that a misspelt one is like, as the end of a sentence; empty if there is none."""
    close = get_close_matches(name, list(existing), n=1, cutoff=0.7)
    return f"; did you mean {close[0]}?" if close else ""
