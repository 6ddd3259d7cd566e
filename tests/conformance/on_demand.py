"""What `make interop` leaves out unless POCKETMQ_INTEROP_ALL=1 is set.

Left out are the slowest tests, and tests of official programs on official servers: those check the tests, not PocketMQ.
Mark a whole file with `pytestmark = ON_DEMAND`, a test with `@ON_DEMAND`, a parameter with
`pytest.param(..., marks=ON_DEMAND)`, and build a table of rows with `chosen(always, more)`.
"""

import os
from collections.abc import Iterable, Iterator
from typing import TypeVar

import pytest

EVERYTHING = bool(os.environ.get("POCKETMQ_INTEROP_ALL"))
ON_DEMAND = pytest.mark.on_demand
RowT = TypeVar("RowT")


def chosen(always: Iterable[RowT], more: Iterable[RowT]) -> list[RowT]:
    """The rows of `always`, and with POCKETMQ_INTEROP_ALL=1 those of `more` too."""
    return [*always, *(more if EVERYTHING else ())]


def leave_out(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Remove the on-demand tests from `items`; yields the removed ones."""
    for item in [] if EVERYTHING else list(items):
        if item.get_closest_marker("on_demand") and item.get_closest_marker("interop"):
            items.remove(item)
            yield item
