"""Remembered: what an object knows, as a value to return to. A test companion undoes with it what a test did.

A class names its fields in `remembered`. Containers are copied, at any depth; what they hold is immutable. Owner: the
event-loop thread.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

Memory = Mapping[str, Any]
"""Made by `remember`: the values of the fields by name."""


class Remembered:
    """`recall` sets the fields back to the values that `remember` returned; it may be called many times."""

    __slots__ = ()
    remembered: ClassVar[tuple[str, ...]] = ()

    def remember(self) -> Memory:
        return {name: copied(getattr(self, name)) for name in self.remembered}

    def recall(self, memory: Memory) -> bool:
        """False if nothing was different."""
        changed = [name for name in self.remembered if getattr(self, name) != memory[name]]
        for name in changed:
            value = getattr(self, name)
            if isinstance(value, dict):  # others may hold it
                value.clear()
                value.update(copied(memory[name]))
            else:
                setattr(self, name, copied(memory[name]))
        return bool(changed)


def copied(value: Any) -> Any:
    """The value with containers of its own."""
    if isinstance(value, dict):
        return {key: copied(part) for key, part in value.items()}
    if isinstance(value, list):
        return [copied(part) for part in value]
    if isinstance(value, set):
        return set(value)
    return value
