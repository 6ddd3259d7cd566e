"""Errors of this package: what a caller does about a peer's bytes.

Nothing here knows of sockets; a server closes the connection on `FrameError`, answers the official code on
`FieldError`, and treats `BodyError` as a bad request.
"""


class ProtocolError(Exception):
    """Root of everything this package raises about bytes that came from outside."""


class FrameError(ProtocolError):
    """The byte stream cannot be a remoting stream: close the connection, nothing is answered."""


class FieldError(ProtocolError):
    """A header field is missing or unreadable; the text names the class, the key and the value."""


class BodyError(ProtocolError):
    """A request or reply body does not have the form its code demands."""
