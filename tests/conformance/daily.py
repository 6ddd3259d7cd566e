"""Tests that `make test` runs too: they send raw frames to our server and need no Java.

A test is one of them by its mark, `@DAILY` or `pytest.param("ours", marks=DAILY)`, unless it is marked `@JAVA`: then it
starts official programs. All others here are `interop`.
"""

from typing import Protocol

import pytest

DAILY = pytest.mark.daily
JAVA_PROGRAMS = pytest.mark.java


class Marked(Protocol):
    def get_closest_marker(self, name: str) -> pytest.Mark | None: ...


def is_daily(item: Marked) -> bool:
    return item.get_closest_marker("daily") is not None and item.get_closest_marker("java") is None


def with_java(request: pytest.FixtureRequest) -> bool:
    """Whether this run plays tests with official programs: then ours needs a network namespace like theirs."""
    return any(item.get_closest_marker("interop") for item in request.session.items)
