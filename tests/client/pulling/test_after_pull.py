"""How an answer to a pull moves the position (the push consumer's pull callback)."""

from types import SimpleNamespace
from typing import Any

import pytest
from pocketmq.client import MessageQueue, NotReachable, RequestRefused
from pocketmq.client.instance.instance import ClientInstance
from pocketmq.client.offsets.offset_store import NO_OFFSET
from pocketmq.client.pulling.pull_api import PullApi, PullOrder
from pocketmq.client.pulling.queue_loop import delay_after_failure
from pocketmq.client.push.push_queues import PullLoop
from pocketmq.client.rebalancing.process_queue import ProcessQueue
from pocketmq.client.rebalancing.subscriptions import subscription_of
from pocketmq.client.values.results import PULL_STATUS, PullResult, PullStatus
from pocketmq.protocol.message.flags import PULL_COMMIT_OFFSET, PULL_SUSPEND
from pocketmq.protocol.wire.response_codes import ResponseCode

from client_vectors import FakeClock, consumer_context, pulled_message

QUEUE = MessageQueue("T", "b", 0)


@pytest.fixture
def queue() -> ProcessQueue:
    return ProcessQueue(FakeClock())


async def after(
    status: PullStatus, queue: ProcessQueue, *, found: int = 0, asked: int = 5
) -> tuple[int, int | None, int]:
    """What follows a pull that brought so many messages, and names offset 8 as the next: the offset of the next pull,
    the pause before it, and the offset in memory."""
    messages = [pulled_message(5 + number) for number in range(found)]

    async def pull(*arguments: object) -> PullResult:
        return PullResult(status, messages, 8, 0, 9)

    async def correct(queue: MessageQueue, process_queue: ProcessQueue, offset: int) -> None: ...

    context = consumer_context(SimpleNamespace(spawn=lambda work, name: work.close()), pull_interval=70)
    context.subscriptions.subscribe("T", "*")
    queues: Any = SimpleNamespace(
        context=context,
        locks=None,
        pull_api=SimpleNamespace(pull=pull),
        delivery=SimpleNamespace(deliver=lambda *arguments: None),
        correct_offset=correct,
    )
    loop = PullLoop(queues, QUEUE, queue, asked)
    delay_ms = await loop.ask()
    return loop._offset, delay_ms, context.offsets.read(QUEUE)


def test_four_codes_are_answers_and_all_others_refusals():
    assert PULL_STATUS == {
        ResponseCode.SUCCESS: PullStatus.FOUND,
        ResponseCode.PULL_NOT_FOUND: PullStatus.NO_NEW_MSG,
        ResponseCode.PULL_RETRY_IMMEDIATELY: PullStatus.NO_MATCHED_MSG,
        ResponseCode.PULL_OFFSET_MOVED: PullStatus.OFFSET_ILLEGAL,
    }


async def test_found_messages_are_followed_by_the_pull_interval(queue: ProcessQueue) -> None:
    assert await after(PullStatus.FOUND, queue, found=3) == (8, 70, NO_OFFSET)
    assert await after(PullStatus.FOUND, queue) == (8, 0, NO_OFFSET)


@pytest.mark.parametrize("status", [PullStatus.NO_NEW_MSG, PullStatus.NO_MATCHED_MSG])
async def test_an_idle_queue_makes_progress(status: PullStatus, queue: ProcessQueue) -> None:
    assert await after(status, queue) == (8, 0, 8)


async def test_a_pull_that_is_to_be_asked_again_at_once_waits_a_moment(queue: ProcessQueue) -> None:
    assert await after(PullStatus.NO_MATCHED_MSG, queue, asked=8) == (8, 20, 8)
    assert await after(PullStatus.NO_NEW_MSG, queue, asked=8) == (8, 0, 8), "the broker held it"


@pytest.mark.parametrize("taken", [0, 1])
async def test_progress_is_not_recorded_past_unfinished_messages(taken: int, queue: ProcessQueue) -> None:
    queue.put([pulled_message(5)])
    queue.take(taken)
    assert await after(PullStatus.NO_NEW_MSG, queue) == (8, 0, NO_OFFSET)


async def test_an_illegal_offset_ends_the_pull_loop(queue: ProcessQueue) -> None:
    queue.put([pulled_message(5)])
    assert await after(PullStatus.OFFSET_ILLEGAL, queue) == (8, None, NO_OFFSET)


def test_a_busy_broker_is_pulled_again_soon():
    assert delay_after_failure(RequestRefused(ResponseCode.FLOW_CONTROL, "", "PULL"), 1000) == 20
    assert delay_after_failure(RequestRefused(ResponseCode.SUBSCRIPTION_NOT_LATEST, "", "PULL"), 1000) == 1000
    assert delay_after_failure(NotReachable("gone"), 1000) == 1000


@pytest.mark.parametrize(("is_slave", "flag"), [(False, PULL_COMMIT_OFFSET), (True, 0)])
async def test_only_a_master_gets_the_offset(instance: ClientInstance, is_slave: bool, flag: int) -> None:
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
