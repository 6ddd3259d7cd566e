"""Which form of a function is used: the one in C if it was built, else the one in Python."""

import importlib
import os
from collections.abc import Callable
from typing import Final, TypeVar

SWITCH: Final = "POCKETMQ_ACCELERATOR"
"""Environment variable; `off` keeps to Python."""

FunctionT = TypeVar("FunctionT", bound=Callable[..., object])

try:
    _native = None if os.environ.get(SWITCH) == "off" else importlib.import_module(".native", __package__)
except ImportError:
    _native = None  # no compiler at the installation

in_python: Final[dict[str, Callable[..., object]]] = {}
"""The functions in Python by their names, also where those in C are used."""

is_native: Final = _native is not None
"""Whether the functions in C are used."""


def chosen(function: FunctionT) -> FunctionT:
    """The function of that name in C, which has the same signature; without it, the one in Python."""
    in_python[function.__name__] = function
    native: FunctionT = getattr(_native, function.__name__, function)
    return native
