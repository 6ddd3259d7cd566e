"""Errors of the broker: which code goes on the wire, and what stops a start."""

from pocketmq.protocol.wire.response_codes import ResponseCode


class BrokerError(Exception):
    """A request refused: answered with this code and remark, and nothing is logged."""

    def __init__(self, code: ResponseCode | int, remark: str) -> None:
        super().__init__(remark)
        self.code = int(code)
        self.remark = remark


class StartError(Exception):
    """The server cannot start for a reason its user can mend: one line, exit code 2."""


class PeerError(Exception):
    """A peer we called did not answer, or its connection went away."""
