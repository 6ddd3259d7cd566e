"""Errors of the embedded server and its fixtures.

A server that cannot start raises what `pocketmq serve` prints: `StartError` of the broker, `StoreError` of the store.
"""


class TestingError(Exception):
    """Root of what this package raises."""

    __test__ = False  # pytest takes classes of this name for tests


class NotRunningError(TestingError):
    """The server was asked for something before `start` or after `stop`, or from its own thread."""


class WouldBlockError(TestingError):
    """A waiting call inside a running event loop: it would keep the code under test from running."""


class MessagesMissingError(TestingError, AssertionError):
    """What a test waited for did not come in time; says how much of it did."""
