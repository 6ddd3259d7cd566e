"""Errors of the broker and the name server: a refused request, a failed start, a peer that does not answer."""

from typing import Final

from pocketmq.protocol.wire.response_codes import ResponseCode

OVERLOAD: Final = "[OVERLOAD]system busy, start flow control for a while"
"""The official remark of SYSTEM_BUSY; official clients then try another broker."""

_FAQ_5: Final = "https://rocketmq.apache.org/docs/bestPractice/06FAQ"
_FAQ_4: Final = "http://rocketmq.apache.org/docs/faq/"


def faq(*, is_5: bool) -> str:
    """The official hint at the end of many remarks."""
    return f"\nSee {_FAQ_5 if is_5 else _FAQ_4} for further details."


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
