"""Whether a failed send is tried again, what the failure says about the broker, and how much time an attempt gets.

    failure of an attempt              again (sync)              isolate  reachable
    CLIENT: no route or address        yes                       no       yes
    REMOTING: no connection, timeout   yes                       yes      yes; with the detector on, no
    BROKER: an error response          codes in the retry set    yes      no

`send_nowait` repeats only after REMOTING failures (never after an error response, whatever its code), while time is
left; 4.9 gives each attempt the full time and does not look at what is left. One-way sends and awaited sends to a given
queue get one attempt. Choosing the queue of an attempt is in `queue_choice.py`. Official:
DefaultMQProducerImpl.sendDefaultImpl, MQClientAPIImpl.onExceptionImpl.
"""

from collections.abc import Collection, Sequence
from enum import Enum
from typing import Final

import msgspec

from ..errors import ClientError, SendBufferFull, SendFailed, SendTimedOut, TooManyCalls
from ..settings.producer_settings import RETRY_RESPONSE_CODES
from ..values.results import SendStatus

CONNECT_BROKER_EXCEPTION: Final = 10001
ACCESS_BROKER_TIMEOUT: Final = 10002
BROKER_NOT_EXIST_EXCEPTION: Final = 10003
NO_NAME_SERVER_EXCEPTION: Final = 10004
NOT_FOUND_TOPIC_EXCEPTION: Final = 10005
NO_CODE: Final = -1


class Failure(Enum):
    """Kind of a failed attempt."""

    CLIENT = "client"
    """No route or no address."""
    CONNECT = "connect"
    """REMOTING: no connection."""
    TIMEOUT = "timeout"
    """REMOTING: no answer in time."""
    SEND = "send"
    """REMOTING: anything else, such as a connection that broke."""
    BROKER = "broker"
    """An error response."""


_REMOTING: Final = frozenset({Failure.CONNECT, Failure.TIMEOUT, Failure.SEND})
_FINAL_CODES: Final = {
    Failure.CONNECT: CONNECT_BROKER_EXCEPTION,
    Failure.TIMEOUT: ACCESS_BROKER_TIMEOUT,
    Failure.CLIENT: BROKER_NOT_EXIST_EXCEPTION,
}


class FailureVerdict(msgspec.Struct, frozen=True):
    """`again`: try the next queue. The other two go to the fault table (LatencyFaultTolerance.update)."""

    again: bool
    isolate: bool
    reachable: bool


def sync_verdict(
    failure: Failure,
    *,
    code: int = NO_CODE,
    retry_response_codes: Collection[int] = RETRY_RESPONSE_CODES,
    start_detector_enable: bool = False,
) -> FailureVerdict:
    """What a failed attempt of a synchronous send leads to, while attempts are left. `code`: of an error response."""
    if failure is Failure.BROKER:
        return FailureVerdict(again=code in retry_response_codes, isolate=True, reachable=False)
    if failure in _REMOTING:
        return FailureVerdict(again=True, isolate=True, reachable=not start_detector_enable)
    return FailureVerdict(again=True, isolate=False, reachable=True)


def is_async_repeated(failure: Failure, *, retries_done: int, retry_times: int, left_ms: int) -> bool:
    """Whether a failed attempt of an asynchronous send is repeated. `retries_done`: repeats before this attempt."""
    return failure in _REMOTING and retries_done < retry_times and left_ms > 0


def attempt_due(
    due: float, now: float, *, max_per_request_ms: int = -1, is_last: bool = True
) -> float | None:
    """When the attempt that starts now ends, in loop time; None if the time of the whole call is over.

    `max_per_request_ms` (send_msg_max_timeout_per_request, -1 off) shortens attempts that are not the last.
    """
    if now >= due:
        return None
    if max_per_request_ms > -1 and not is_last:
        return min(due, now + max_per_request_ms / 1000)
    return due


def is_result_final(status: SendStatus, *, retry_another_broker_when_not_store_ok: bool) -> bool:
    """Whether a stored message's status ends the call; if not, another broker gets the message too."""
    return status is SendStatus.SEND_OK or not retry_another_broker_when_not_store_ok


def final_code(failure: Failure | None, code: int = NO_CODE) -> int:
    """Code of the error that ends a send; `code` is that of the last error response."""
    if failure is Failure.BROKER:
        return code
    return NO_CODE if failure is None else _FINAL_CODES.get(failure, NO_CODE)


def send_failed(failure: Failure | None, error: Exception, code: int = NO_CODE, text: str = "") -> SendFailed:
    """The error that ends a send; `error` is what its last attempt failed with, `text` what the call has to add."""
    kind = SendTimedOut if failure is Failure.TIMEOUT else SendFailed
    if isinstance(error, TooManyCalls):
        kind = SendBufferFull
    retriable = isinstance(error, ClientError) and error.retriable
    failed = kind(final_code(failure, code), f"{text}; {error}" if text else str(error), retriable=retriable)
    failed.__cause__ = error
    return failed


def send_timed_out(text: str) -> SendTimedOut:
    """The error of a send whose time is over before anything was sent."""
    return SendTimedOut(ACCESS_BROKER_TIMEOUT, text)


def final_text(attempts: int, cost_ms: int, topic: str, brokers_sent: Sequence[str | None]) -> str:
    """The official words. `brokers_sent` has one entry for each attempt allowed, None for one that was not made."""
    brokers = ", ".join("null" if name is None else name for name in brokers_sent)
    return (
        f"Send [{attempts}] times, still failed, cost [{cost_ms}]ms, Topic: {topic}, BrokersSent: [{brokers}]"
    )
