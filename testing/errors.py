"""Errors of the embedded server and its fixtures.

A server that cannot start raises what `pocketmq serve` prints: `StartError` of the broker, `StoreError` of the store.
"""

from collections.abc import Sequence


class TestingError(Exception):
    """Root of what this package raises."""

    __test__ = False  # pytest takes classes of this name for tests


class NotRunningError(TestingError):
    """A call to the server before `start`, after `stop`, or from its own thread."""


class WouldBlockError(TestingError):
    """A call that waits, inside a running event loop: it would block the code under test."""


class MessagesMissingError(TestingError, AssertionError):
    """What a test waited for did not arrive in time; says how much did."""


class WrongValueError(TestingError, ValueError):
    """A value that a rule, a search or an HTTP request may not have. `allowed` lists what it may be."""

    def __init__(self, text: str, allowed: Sequence[object] = ()) -> None:
        super().__init__(text)
        self.allowed = list(allowed)


class UnusedRulesError(TestingError, AssertionError):
    """A test ended with rules that were not used up."""


class LoadError(TestingError, ValueError):
    """A starting state that cannot be read or made; the text is one line."""


class SnapshotError(TestingError, ValueError):
    """A snapshot that cannot be read or restored; nothing has changed."""
