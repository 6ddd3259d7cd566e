"""The decision table of failed sends (the client's sendDefaultImpl and onExceptionImpl)."""

import re
from types import SimpleNamespace
from typing import Any

import pytest
from pocketmq.client import CallTimeout, Message, MessageQueue, SendFailed, SendTimedOut
from pocketmq.client.instance.instance import ClientInstance
from pocketmq.client.producing.outgoing import Outgoing
from pocketmq.client.producing.send_retry import AttemptFailed, Failure, is_async_repeated, send_failed
from pocketmq.client.producing.sender import Sender
from pocketmq.client.settings.producer_settings import RETRY_RESPONSE_CODES, ProducerSettings
from pocketmq.client.values.results import SEND_STATUS, SendResult, SendStatus
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


def test_four_codes_mean_that_the_message_is_stored():
    assert SEND_STATUS == {
        ResponseCode.SUCCESS: SendStatus.SEND_OK,
        ResponseCode.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
        ResponseCode.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
        ResponseCode.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
    }


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


class Scripted(Sender):
    """A sender whose attempts end as the script says; `limits` are when they would have ended without an answer."""

    def __init__(
        self, instance: ClientInstance, *script: AttemptFailed | SendStatus, **settings: Any
    ) -> None:
        super().__init__(instance, "g", ProducerSettings(**settings))
        self._script = iter(script)
        self.limits: list[float] = []
        queues = tuple(MessageQueue("T", name, 0) for name in "ab")
        route: Any = SimpleNamespace(topic="T", queues=queues)
        instance.routes._routes["T"] = route

    async def attempt(self, outgoing: Outgoing, queue: MessageQueue, due: float, *mode: Any) -> SendResult:
        self.limits.append(due)
        outcome = next(self._script)
        if isinstance(outcome, AttemptFailed):
            raise outcome
        return SendResult("id", "offset id", queue, len(self.limits), outcome)

    async def run(self, timeout_ms: int = 10_000) -> SendResult:
        outgoing = Outgoing("T", b"x", "", "id", Message("T", b"x"))
        return await self.send(outgoing, self.due_in(timeout_ms), attempts=3)


LATE = AttemptFailed(Failure.TIMEOUT, CallTimeout("late"))


async def test_attempts_share_the_time_of_the_call(instance: ClientInstance) -> None:
    sender = Scripted(instance, LATE, LATE, LATE)
    with pytest.raises(SendTimedOut):
        await sender.run()
    assert len(set(sender.limits)) == 1
    sender = Scripted(instance, LATE, LATE, LATE, send_msg_max_timeout_per_request=1000)
    with pytest.raises(SendTimedOut):
        await sender.run()
    assert sender.limits[1] < sender.limits[2] - 5, "the last attempt has all the time that is left"
    sender = Scripted(instance, LATE, LATE, LATE, send_msg_max_timeout_per_request=60_000)
    with pytest.raises(SendTimedOut):
        await sender.run()
    assert len(set(sender.limits)) == 1


async def test_no_attempt_begins_once_the_time_is_over(instance: ClientInstance) -> None:
    sender = Scripted(instance)
    with pytest.raises(SendTimedOut, match=r"^Send \[0\] times, still failed, .* is out of time"):
        await sender.run(timeout_ms=0)


@pytest.mark.parametrize("status", [status for status in SendStatus if status is not SendStatus.SEND_OK])
async def test_another_broker_gets_a_badly_stored_message_only_on_request(
    status: SendStatus, instance: ClientInstance
) -> None:
    script = (status, status, SendStatus.SEND_OK)
    assert (await Scripted(instance, *script).run()).queue_offset == 1
    again = {"retry_another_broker_when_not_store_ok": True}
    assert (await Scripted(instance, *script, **again).run()).status is SendStatus.SEND_OK
    last = await Scripted(instance, status, status, status, **again).run()
    assert (last.status, last.queue_offset) == (status, 3), "it is stored all the same"


async def test_the_final_error_has_the_official_message(instance: ClientInstance) -> None:
    refused = AttemptFailed(Failure.BROKER, ValueError("no"), ResponseCode.MESSAGE_ILLEGAL)
    with pytest.raises(SendFailed) as caught:
        await Scripted(instance, LATE, refused).run()
    text = r"Send \[2\] times, still failed, cost \[\d+\]ms, Topic: T, BrokersSent: \[(a, b|b, a), null\]; no"
    assert re.match(text, str(caught.value))
    assert caught.value.code == ResponseCode.MESSAGE_ILLEGAL
