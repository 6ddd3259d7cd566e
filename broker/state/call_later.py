"""The type of a broker's timers: `loop.call_later`, or the function of a test with a virtual clock."""

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """What `CallLater` returns."""

    def cancel(self) -> None: ...


CallLater = Callable[[float, Callable[[], None]], Timer]
"""Like the event loop's `call_later`: seconds and a callback."""
