"""Errors of the embedded server and its fixtures.

A server that cannot start raises what `pocketmq serve` prints: `StartError` of the broker, `StoreError` of the store.
"""


class TestingError(Exception):
    """Root of what this package raises."""

    __test__ = False  # pytest takes classes of this name for tests


class NotRunningError(TestingError):
    """A call to the server before `start`, after `stop`, or from its own thread."""


class WouldBlockError(TestingError):
    """A call that waits, inside a running event loop: it would block the code under test."""


class MessagesMissingError(TestingError, AssertionError):
    """What a test waited for did not arrive in time; says how much did."""
