"""Every module of handlers. Importing such a module registers its handlers (`calls/registry.py`)."""

from types import ModuleType
from typing import Final

HANDLER_MODULES: Final[tuple[ModuleType, ...]] = ()
