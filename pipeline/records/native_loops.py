"""The loops of this room in C, `native.c`: the module, or None where it could not be built or is switched off."""

import importlib
import os
from typing import Any, Final

SWITCH: Final = "POCKETMQ_ACCELERATOR"
"""Environment variable; `off` keeps to Python, as in the store."""

native: Any
try:
    native = None if os.environ.get(SWITCH) == "off" else importlib.import_module(".native", __package__)
except ImportError:
    native = None  # no compiler at the installation
