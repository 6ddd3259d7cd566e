"""The exceptions of this package. The class says what to do: repeat the call, correct it, or look at the server.

Many are exceptions of Python too: a `ValueError`, `ConnectionError`, `TimeoutError` or `BufferError`.
"""

from enum import Enum
from typing import Final

from pocketmq.protocol.wire.response_codes import ResponseCode

RETRIABLE_CODES: Final = frozenset(
    {
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.GO_AWAY,
    }
)
"""Response codes that speak of the server's state, not of the request."""


class ClientError(Exception):
    """Root of everything this package raises."""

    retriable: bool = False
    """Whether the same call may succeed later without a change."""


class InvalidArgument(ClientError, ValueError):
    """A wrong argument: the call can never succeed."""


class InvalidSetting(InvalidArgument):
    """A setting of a wrong type, outside its range, unknown, or at odds with another."""


class ValidationFailed(InvalidArgument):
    """A group, topic or message that no broker accepts. `code` is the official response code, -1 without one."""

    def __init__(self, text: str, code: int = -1) -> None:
        super().__init__(text)
        self.code = code


class RequestRefused(ClientError):
    """A server answered with a code other than success (official MQBrokerException)."""

    def __init__(self, code: int, remark: str, request_name: str) -> None:
        super().__init__(f"{request_name}: code {code_text(code)}, {remark or 'no remark'}")
        self.code = code
        self.remark = remark
        self.retriable = code in RETRIABLE_CODES


class NotReachable(ClientError, ConnectionError):
    """No connection, or it ended: try again, or another server (official RemotingConnectException)."""

    retriable = True


class CallTimeout(NotReachable, TimeoutError):
    """No answer in time; the request may have been carried out (official RemotingTimeoutException)."""


class UnreadableReply(NotReachable):
    """A server's answer cannot be read. The request may have been carried out (official RemotingCommandException)."""


class TooManyCalls(NotReachable, BufferError):
    """Too many requests of one connection wait for replies: wait for some before sending more."""


class RouteNotFound(ClientError):
    """No name server knows a broker for the topic, or the broker has no master now."""

    retriable = True


CLIENT_CODES: Final = {
    10001: "no connection",
    10002: "no answer in time",
    10003: "no address of the broker",
    10004: "no name server is configured",
    10005: "no route",
}
"""Codes of the client's own (official ClientErrorCode)."""


def code_text(code: int) -> str:
    """A code with its meaning: `16 NO_PERMISSION`, `10002 no answer in time`."""
    if code in CLIENT_CODES:
        return f"{code} {CLIENT_CODES[code]}"
    return f"{code} {ResponseCode(code).name}" if code in ResponseCode._value2member_map_ else str(code)


class SendFailed(ClientError):
    """No attempt to send got the message stored (official MQClientException of DefaultMQProducerImpl).

    `code` is the broker's response code or one of the client's own (`CLIENT_CODES`), -1 for anything else. `__cause__`
    is the failure of the last attempt. After a failure without an answer of the broker the message may be stored all
    the same.
    """

    def __init__(self, code: int, text: str, *, retriable: bool = True) -> None:
        has_code = code == -1 or f"code {code}" in text
        super().__init__(text if has_code else f"{text} (code {code_text(code)})")
        self.code = code
        self.retriable = retriable


class SendTimedOut(SendFailed, TimeoutError):
    """The time for the whole send is over, or its last attempt got no answer in time. The message may be stored."""


class SendBufferFull(SendFailed, BufferError):
    """Too many sends wait for replies. Nothing was sent: `await producer.flush()`, then send again."""


class RequestTimeout(ClientError, TimeoutError):
    """A request was sent, but its reply did not arrive in time (official RequestTimeoutException)."""

    code = 10006
    retriable = True


class AssignmentTimeout(ClientError, TimeoutError):
    """A consumer has no share of its queues yet: no broker answered, or a round was not complete."""

    retriable = True


class SelectionFailed(ClientError):
    """A queue selector raised, or did not return a queue."""


class AllocationFailed(ClientError):
    """A strategy cannot decide (official IllegalArgumentException): the assignment stays as it is."""


class FirstPositionUnknown(ClientError):
    """Where to begin in a queue cannot be found out now: the next rebalance tries again. `code` is the official
    response code."""

    retriable = True

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Absence(Enum):
    """Why `NotOnline` was raised."""

    NO_MEMBERS = "no members"
    """No member of the group is connected."""
    NO_OFFSETS = "no offsets"
    """Members are connected, but the brokers have no offset of the group."""
    BROADCASTING = "broadcasting"
    """The members broadcast: they keep their offsets themselves."""


class NotOnline(ClientError):
    """A group has no members, or has consumed nothing, where the call needs some (official CONSUMER_NOT_ONLINE)."""

    retriable = True

    def __init__(self, text: str, reason: Absence = Absence.NO_MEMBERS) -> None:
        super().__init__(text)
        self.reason = reason


class MessageNotFound(ClientError):
    """No broker of the topic has such a message (official NO_MESSAGE)."""


class ClientClosed(ClientError):
    """The client is not started, or was shut down; or it belongs to another event loop."""
