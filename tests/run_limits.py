"""A test that takes above two seconds and is not marked `slow` fails: a hook, in the conftest of each test folder.

Time in which the machine made the test wait does not count (`stopwatch.py`): a busy machine may excuse a slow test, but
never fails a fast one.
"""

from collections.abc import Generator

import pytest

from stopwatch import Stopwatch, load

SLOW_SECONDS = 2.0
MAY_BE_SLOW = ("slow", "soak", "interop", "spark")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    watch = Stopwatch()
    result = yield
    seconds = watch.seconds
    if seconds > SLOW_SECONDS * load() and not any(map(item.get_closest_marker, MAY_BE_SLOW)):
        pytest.fail(f"took {seconds:.1f} s: mark it slow, or make it quicker", pytrace=False)
    return result
