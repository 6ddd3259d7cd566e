"""The decision table of failed sends (the client's sendDefaultImpl and onExceptionImpl)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.client.producing.send_retry import (
    AttemptFailed,
    Failure,
    attempt_due,
    final_text,
    is_async_repeated,
    is_result_final,
    send_failed,
)
from pocketmq.client.settings.producer_settings import RETRY_RESPONSE_CODES
from pocketmq.client.values.results import SendStatus, send_status
from pocketmq.protocol.wire.response_codes import ResponseCode

from client_vectors import vectors

REMOTING = [Failure.CONNECT, Failure.TIMEOUT, Failure.SEND]


def test_retry_codes_are_the_official_ones():
    ((_, recorded),) = vectors("retry-codes")
    assert sorted(RETRY_RESPONSE_CODES) == [int(code) for code in recorded.strip("[]").split(", ")]
    ((_, of_4_9),) = vectors("retry-codes", "4.9.8")
    missing = RETRY_RESPONSE_CODES - {int(code) for code in of_4_9.strip("[]").split(", ")}
    assert missing == {ResponseCode.SYSTEM_BUSY, ResponseCode.GO_AWAY}


@pytest.mark.parametrize("kind", REMOTING)
def test_transport_failures_are_tried_again_and_isolate(kind: Failure):
    failed = AttemptFailed(kind, ValueError())
    assert failed.is_retried(())
    assert failed.isolates
    assert failed.leaves_reachable(has_detector=False)
    assert not failed.leaves_reachable(has_detector=True)


@pytest.mark.parametrize("code", list(ResponseCode))
def test_error_responses_are_tried_again_only_if_another_broker_may_accept_the_message(code: ResponseCode):
    failed = AttemptFailed(Failure.BROKER, ValueError(), code)
    assert failed.is_retried(RETRY_RESPONSE_CODES) == (code in RETRY_RESPONSE_CODES)
    assert failed.isolates
    assert not failed.leaves_reachable(has_detector=False)


def test_client_errors_are_tried_again_without_blaming_the_broker():
    failed = AttemptFailed(Failure.CLIENT, ValueError())
    assert failed.is_retried(())
    assert not failed.isolates
    assert failed.leaves_reachable(has_detector=True)


@pytest.mark.parametrize("failure", Failure)
def test_asynchronous_sends_are_repeated_for_transport_failures(failure: Failure):
    def is_repeated(retries_done: int, left_ms: int) -> bool:
        return is_async_repeated(failure, retries_done=retries_done, retry_times=2, left_ms=left_ms)

    assert is_repeated(0, 1) == is_repeated(1, 1) == (failure in REMOTING)
    assert not is_repeated(2, 1)
    assert not is_repeated(0, 0)


@given(st.integers(0, 10_000), st.integers(0, 20_000), st.integers(-1, 5_000), st.booleans())
def test_attempts_share_the_time_of_the_call(
    timeout_ms: int, elapsed_ms: int, max_per_request_ms: int, is_last: bool
):
    began, now = 7.0, 7.0 + elapsed_ms / 1000
    due = began + timeout_ms / 1000
    ends = attempt_due(due, now, max_per_request_ms=max_per_request_ms, is_last=is_last)
    if elapsed_ms >= timeout_ms:
        assert ends is None
    elif max_per_request_ms == -1 or is_last:
        assert ends == due
    else:
        assert ends == min(due, now + max_per_request_ms / 1000)


def test_four_codes_mean_that_the_message_is_stored():
    assert {code: send_status(code) for code in ResponseCode if send_status(code)} == {
        ResponseCode.SUCCESS: SendStatus.SEND_OK,
        ResponseCode.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
        ResponseCode.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
        ResponseCode.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
    }


def test_another_broker_gets_a_badly_stored_message_only_on_request():
    for status in SendStatus:
        assert is_result_final(status, retry_another_broker_when_not_store_ok=False)
        is_ok = status is SendStatus.SEND_OK
        assert is_result_final(status, retry_another_broker_when_not_store_ok=True) == is_ok


@pytest.mark.parametrize(
    ("failure", "code", "expected"),
    [
        (Failure.CONNECT, -1, 10001),
        (Failure.TIMEOUT, -1, 10002),
        (Failure.CLIENT, -1, 10003),
        (Failure.BROKER, 2, 2),
        (Failure.SEND, -1, -1),
        (None, -1, -1),
    ],
)
def test_the_last_failure_gives_the_code(failure: Failure | None, code: int, expected: int):
    assert send_failed(failure, ValueError(), code).code == expected


def test_the_final_error_has_the_official_message():
    assert final_text(2, 31, "t", ["a", "b", None]) == (
        "Send [2] times, still failed, cost [31]ms, Topic: t, BrokersSent: [a, b, null]"
    )
