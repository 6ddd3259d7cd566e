"""How an answer to a pull moves the position (the push consumer's pull callback)."""

import pytest
from pocketmq.client.errors import NotReachable, RequestRefused
from pocketmq.client.instance.instance import ClientInstance
from pocketmq.client.instance.instance_config import instance_config
from pocketmq.client.pulling.pull_api import PullApi, PullOrder
from pocketmq.client.pulling.queue_loop import NextPull, after_pull, delay_after_failure
from pocketmq.client.rebalancing.process_queue import ProcessQueue
from pocketmq.client.rebalancing.subscriptions import subscription_of
from pocketmq.client.settings.client_settings import ClientSettings
from pocketmq.client.values.results import PullResult, PullStatus, pull_status
from pocketmq.protocol.message.flags import PULL_COMMIT_OFFSET, PULL_SUSPEND
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.wire.response_codes import ResponseCode

from client_vectors import FakeClock, pulled_message


@pytest.fixture
def queue() -> ProcessQueue:
    return ProcessQueue(FakeClock())


def after(
    status: PullStatus, queue: ProcessQueue, *, found: int, pull_interval_ms: int, asked: int = 5
) -> NextPull:
    """What follows a pull that brought so many messages, and names offset 8 as the next."""
    result = PullResult(status, [pulled_message(5 + number) for number in range(found)], 8, 0, 9)
    return after_pull(result, queue, asked=asked, pull_interval_ms=pull_interval_ms)


def test_four_codes_are_answers_and_all_others_refusals():
    assert {code: pull_status(code) for code in ResponseCode if pull_status(code)} == {
        ResponseCode.SUCCESS: PullStatus.FOUND,
        ResponseCode.PULL_NOT_FOUND: PullStatus.NO_NEW_MSG,
        ResponseCode.PULL_RETRY_IMMEDIATELY: PullStatus.NO_MATCHED_MSG,
        ResponseCode.PULL_OFFSET_MOVED: PullStatus.OFFSET_ILLEGAL,
    }


def test_found_messages_are_followed_by_the_pull_interval(queue: ProcessQueue):
    assert after(PullStatus.FOUND, queue, found=3, pull_interval_ms=70) == NextPull(8, 70)
    assert after(PullStatus.FOUND, queue, found=0, pull_interval_ms=70) == NextPull(8, 0)


@pytest.mark.parametrize("status", [PullStatus.NO_NEW_MSG, PullStatus.NO_MATCHED_MSG])
def test_an_idle_queue_makes_progress(status: PullStatus, queue: ProcessQueue):
    assert after(status, queue, found=0, pull_interval_ms=70) == NextPull(8, 0, raise_to=8)


def test_a_pull_that_is_to_be_asked_again_at_once_waits_a_moment(queue: ProcessQueue):
    again = after(PullStatus.NO_MATCHED_MSG, queue, found=0, pull_interval_ms=70, asked=8)
    assert again == NextPull(8, 20, raise_to=8)
    held = after(PullStatus.NO_NEW_MSG, queue, found=0, pull_interval_ms=70, asked=8)
    assert held == NextPull(8, 0, raise_to=8), "the broker held it"


@pytest.mark.parametrize("taken", [0, 1])
def test_progress_is_not_recorded_past_unfinished_messages(taken: int, queue: ProcessQueue):
    queue.put([pulled_message(5)])
    queue.take(taken)
    assert after(PullStatus.NO_NEW_MSG, queue, found=0, pull_interval_ms=0) == NextPull(8)


def test_an_illegal_offset_ends_the_pull_loop(queue: ProcessQueue):
    queue.put([pulled_message(5)])
    assert after(PullStatus.OFFSET_ILLEGAL, queue, found=0, pull_interval_ms=70) == NextPull(8, None)


def test_a_busy_broker_is_pulled_again_soon():
    assert delay_after_failure(RequestRefused(ResponseCode.FLOW_CONTROL, "", "PULL"), 1000) == 20
    assert delay_after_failure(RequestRefused(ResponseCode.SUBSCRIPTION_NOT_LATEST, "", "PULL"), 1000) == 1000
    assert delay_after_failure(NotReachable("gone"), 1000) == 1000


@pytest.mark.parametrize(("is_slave", "flag"), [(False, PULL_COMMIT_OFFSET), (True, 0)])
async def test_only_a_master_gets_the_offset(is_slave: bool, flag: int) -> None:
    instance = ClientInstance.get(instance_config(ClientSettings(namesrv_addr="127.0.0.1:1")))
    order = PullOrder(
        offset=7,
        subscription=subscription_of("T", "*"),
        sends_expression=False,
        sys_flag=PULL_SUSPEND | PULL_COMMIT_OFFSET,
        max_count=1,
        timeout_ms=1,
    )
    request = PullApi(instance, "g")._request(MessageQueue("T", "b", 0), order, "b:1", is_slave=is_slave)
    assert request.sys_flag == PULL_SUSPEND | flag
    await instance.shutdown()
