"""Errors of the broker and the name server: a refused request, a start that fails, a peer that does not answer."""

from pocketmq.protocol.wire.response_codes import ResponseCode


class Refusal(Exception):
    """The server refuses a request: the reply has this code and remark, and nothing is logged."""

    def __init__(self, code: ResponseCode | int, remark: str) -> None:
        super().__init__(remark)
        self.code = int(code)
        self.remark = remark


class StartError(Exception):
    """The server cannot start, for a reason its user can correct: one line, exit code 2."""


class PeerError(Exception):
    """A peer did not answer our request, or its connection closed."""
