"""What `make interop` leaves out unless POCKETMQ_INTEROP_ALL=1 is set.

Left out is what takes longest, or plays official programs against official servers alone: that shows the test
right, not us. All of it was played, and is again on demand. A whole test is marked `@ON_DEMAND`, a parameter is
`pytest.param(..., marks=ON_DEMAND)`, a table that other tables are made from is `chosen(always, more)`, and of a file
in `OURS_ALONE` the official sides are left out.
"""

import os
from collections.abc import Iterable, Iterator
from typing import TypeVar

import pytest

EVERYTHING = bool(os.environ.get("POCKETMQ_INTEROP_ALL"))
ON_DEMAND = pytest.mark.on_demand
OURS_ALONE = frozenset(
    {
        "test_group_rules",
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
        if item.get_closest_marker("on_demand") or (item.path.stem in OURS_ALONE and _is_official(item)):
            yield item
        else:
            kept.append(item)
    items[:] = kept


def _is_official(item: pytest.Item) -> bool:
    return "official-" in getattr(getattr(item, "callspec", None), "id", "")
