"""Errors about bytes of a peer; the class says what the caller does.

A server closes the connection on `FrameError` and refuses the request on `FieldError` and `BodyError`.
"""


class ProtocolError(Exception):
    """Root of what this package raises about bytes from outside."""


class FrameError(ProtocolError):
    """The byte stream is not a remoting stream: close the connection without a reply."""


class FieldError(ProtocolError):
    """A header field is missing or unreadable; the text names the class, the key and the value."""


class BodyError(ProtocolError):
    """A body does not have the form that its request declares."""
