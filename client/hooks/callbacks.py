"""Checks the functions of a user: is it a coroutine function, and is it a plain one if only that is allowed?

Callbacks, hooks and topic listeners are called in the event loop and must not block: a coroutine function would be
called and never run. Listeners and checkers may be either.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..errors import InvalidArgument


def is_coroutine_function(function: object) -> bool:
    """Also of an object with an `async def __call__`, and of either with some arguments given."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(type(function), "__call__", None)  # noqa: B004  # an object with an `async def __call__`
    )


def check_plain(**functions: Callable[..., Any] | None) -> None:
    """ClientError, with the name, for anything but a plain function or None."""
    for name, function in functions.items():
        if function is not None and (not callable(function) or is_coroutine_function(function)):
            kind = "coroutine function" if callable(function) else type(function).__name__
            raise InvalidArgument(f"{name} must be a plain function, called in the event loop, not a {kind}")
