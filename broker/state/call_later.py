"""The timers of a broker: the event loop's own, or those of a test with a virtual clock."""

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """What `CallLater` returns."""

    def cancel(self) -> None: ...


CallLater = Callable[[float, Callable[[], None]], Timer]
"""As the event loop's `call_later`: seconds, and what to call."""
