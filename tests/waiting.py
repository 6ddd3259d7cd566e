"""Waiting for a condition, with a message if it never holds: the only way in which tests wait.

    await until(lambda: len(seen.messages) == 4)            in a loop
    wait_until(lambda: log.exists(), "the log is written")  beside one

A condition that never holds is an AssertionError that names it: by the given words, or by the caller's own line.
"""

import asyncio
import inspect
import linecache
import time
from collections.abc import Awaitable, Callable
from types import FrameType

WAIT_SECONDS = 10.0
"""Longer than anything a test waits for takes, on a busy machine."""
PAUSE_SECONDS = 0.005


async def until(condition: Callable[[], object], timeout: float = WAIT_SECONDS, what: str = "") -> None:
    """Return once the condition holds."""
    caller = inspect.currentframe()
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, _in_vain(timeout, what, caller)
        await asyncio.sleep(PAUSE_SECONDS)


async def until_it_says(
    question: Callable[[], Awaitable[object]], wanted: object, timeout: float = WAIT_SECONDS, what: str = ""
) -> None:
    """Return once the function returns `wanted`."""
    caller = inspect.currentframe()
    deadline = time.monotonic() + timeout
    while (answer := await asyncio.wait_for(question(), timeout)) != wanted:
        assert time.monotonic() < deadline, f"{_in_vain(timeout, what, caller)}: {answer!r}, not {wanted!r}"
        await asyncio.sleep(2 * PAUSE_SECONDS)


def wait_until(condition: Callable[[], object], what: str = "", timeout: float = WAIT_SECONDS) -> None:
    """Return once the condition holds; blocks the thread."""
    caller = inspect.currentframe()
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, _in_vain(timeout, what, caller)
        time.sleep(2 * PAUSE_SECONDS)


def _in_vain(timeout: float, what: str, frame: FrameType | None) -> str:
    return f"waited {timeout:g} s in vain for: {what or _line_of_caller(frame)}"


def _line_of_caller(frame: FrameType | None) -> str:
    """The statement that waits: for a coroutine, the frame that awaits it."""
    caller = frame.f_back if frame is not None else None
    if caller is None:
        return "something"
    line = linecache.getline(caller.f_code.co_filename, caller.f_lineno).strip()
    return f"{line} (line {caller.f_lineno} of {caller.f_code.co_filename.rpartition('/')[2]})"
