"""What `make interop` leaves out unless POCKETMQ_INTEROP_ALL=1 is set.

Left out are the slowest tests, and tests of official programs on official servers: those check the tests, not PocketMQ.
Mark a whole test with `@ON_DEMAND`, a parameter with `pytest.param(..., marks=ON_DEMAND)`, and build a table of rows
with `chosen(always, more)`. Files in `OURS_ALONE` run without the official sides; files in `FILES` do not run.
"""

import os
from collections.abc import Iterable, Iterator
from typing import TypeVar

import pytest

EVERYTHING = bool(os.environ.get("POCKETMQ_INTEROP_ALL"))
ON_DEMAND = pytest.mark.on_demand
FILES = frozenset(
    {
        "test_5_the_rest",
        "test_access",
        "test_mqadmin_access",
        "test_pop_hand_over",
        "test_replication",
        "test_waiting_examples",
        "test_waiting_hand_over",
    }
)
OURS_ALONE = frozenset(
    {
        "test_pop",
        "test_sql",
        "test_waiting_messages",
    }
)
RowT = TypeVar("RowT")


def chosen(always: Iterable[RowT], more: Iterable[RowT]) -> list[RowT]:
    """The rows of `always`, and with POCKETMQ_INTEROP_ALL=1 those of `more` too."""
    return [*always, *(more if EVERYTHING else ())]


def leave_out(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Remove the on-demand tests from `items`; yields the removed ones."""
    if EVERYTHING:
        return
    kept = []
    for item in items:
        if _is_on_demand(item):
            yield item
        else:
            kept.append(item)
    items[:] = kept


def _is_on_demand(item: pytest.Item) -> bool:
    if item.get_closest_marker("interop") is None:
        return False  # tests/broker has a test_replication.py too
    if item.get_closest_marker("on_demand") or item.path.stem in FILES:
        return True
    return item.path.stem in OURS_ALONE and "official-" in getattr(getattr(item, "callspec", None), "id", "")
