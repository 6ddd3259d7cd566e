"""Another local time zone for a while."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def in_zone(name: str) -> Iterator[None]:
    """Local time is that of `Europe/Berlin`, say; afterwards what it was."""
    try:
        with pytest.MonkeyPatch.context() as changed:
            changed.setenv("TZ", name)
            time.tzset()
            yield
    finally:
        time.tzset()
