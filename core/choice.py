"""Which form of a function is used: the one in C if it was built, else the one in Python."""

import importlib
import logging
import os
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar, TypeVarTuple

SWITCH: Final = "POCKETMQ_ACCELERATOR"
"""Environment variable; `off` keeps to Python."""

FORMAT: Final = 12
"""Counts the changes of what the functions take and return; `FORMAT` in native.c is the same number."""

FunctionT = TypeVar("FunctionT", bound=Callable[..., object])
ResultT = TypeVar("ResultT")
ArgumentsT = TypeVarTuple("ArgumentsT")

try:
    _native = None if os.environ.get(SWITCH) == "off" else importlib.import_module(".native", __package__)
except ImportError:
    _native = None  # no compiler at the installation

if _native is not None and getattr(_native, "FORMAT", 0) != FORMAT:
    logging.getLogger(__name__).warning(
        "%s was built from other sources: install again; until then the slower functions in Python are used",
        _native.__file__,
    )
    _native = None

in_python: Final[dict[str, Callable[..., object]]] = {}
"""The functions in Python by their names, also where those in C are used."""

tried: Final[dict[str, Callable[..., Any]]] = {}
"""The functions in C that leave some arguments to those in Python."""

is_native: Final = _native is not None
"""Whether the functions in C are used."""


def choose(function: FunctionT) -> FunctionT:
    """The function of that name in C, which has the same signature; without it, the one in Python."""
    in_python[function.__name__] = function
    native: FunctionT = getattr(_native, function.__name__, function)
    return native


def try_in_c(function: Callable[[*ArgumentsT], ResultT]) -> Callable[[*ArgumentsT], ResultT]:
    """The function of that name in C, and the one in Python where that returns None or nothing."""
    name = function.__name__
    tried[name] = choose(function)

    @wraps(function)
    def either(*arguments: *ArgumentsT) -> ResultT:
        made: ResultT | None = tried[name](*arguments)
        return made or function(*arguments)

    return either if is_native else function
