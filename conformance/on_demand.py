"""What `make interop` leaves out unless POCKETMQ_INTEROP_ALL=1 is set.

Left out is what takes longest, or plays official programs against official servers alone: that shows the test
right, not us. All of it was played, and is again on demand. A whole test is marked `@ON_DEMAND`, a parameter is
`pytest.param(..., marks=ON_DEMAND)`, a table that other tables are made from is `chosen(always, more)`, of a file in
`OURS_ALONE` the official sides are left out, and of `FILES` all.
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
        "test_admin_commands",
        "test_admin_upkeep",
        "test_mqadmin_access",
        "test_pop_hand_over",
        "test_python_faults",
        "test_replication",
        "test_waiting_examples",
        "test_waiting_hand_over",
    }
)
OURS_ALONE = frozenset(
    {
        "test_pop",
        "test_python_features",
        "test_sql",
        "test_waiting_messages",
    }
)
RowT = TypeVar("RowT")


def chosen(always: Iterable[RowT], more: Iterable[RowT]) -> list[RowT]:
    """The rows of `always`, and with POCKETMQ_INTEROP_ALL=1 those of `more` too."""
    return [*always, *(more if EVERYTHING else ())]


def leave_out(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Take what is on demand out of `items`; what was taken."""
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
