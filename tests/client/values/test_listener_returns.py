"""What a listener's return value means."""

import pytest
from pocketmq.client.values.listener_returns import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    ConsumeReturnType,
    direct_result,
    is_unknown_status,
    return_type,
    status_of,
)
from pocketmq.protocol.bodies.client_state import CMResult
from pocketmq.protocol.message.message_queue import MessageQueue

QUEUE = MessageQueue("t", "b", 0)
CONCURRENT, ORDERLY = ConsumeConcurrentlyContext(QUEUE), ConsumeOrderlyContext(QUEUE)
NONSENSE = [True, False, 0, "CONSUME_SUCCESS", object(), []]


def test_a_listener_that_returns_nothing_has_succeeded():
    assert status_of(None, CONCURRENT) is ConsumeConcurrentlyStatus.CONSUME_SUCCESS
    assert status_of(None, ORDERLY) is ConsumeOrderlyStatus.SUCCESS
    assert not is_unknown_status(None)


@pytest.mark.parametrize("returned", [*NONSENSE, ConsumeOrderlyStatus.SUCCESS])
def test_anything_else_a_concurrent_listener_returns_has_failed(returned: object):
    assert status_of(returned, CONCURRENT) is ConsumeConcurrentlyStatus.RECONSUME_LATER


@pytest.mark.parametrize("returned", [*NONSENSE, ConsumeConcurrentlyStatus.CONSUME_SUCCESS])
def test_anything_else_an_ordered_listener_returns_has_failed(returned: object):
    assert status_of(returned, ORDERLY) is ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT


@pytest.mark.parametrize("returned", NONSENSE)
def test_nonsense_is_distinguished(returned: object):
    assert is_unknown_status(returned)
    assert direct_result(returned, raised=False) is CMResult.CR_RETURN_NULL


def test_statuses_are_themselves():
    assert all(status_of(status, CONCURRENT) is status for status in ConsumeConcurrentlyStatus)
    assert all(status_of(status, ORDERLY) is status for status in ConsumeOrderlyStatus)


@pytest.mark.parametrize(
    ("returned", "raised", "took_ms", "expected"),
    [
        (None, True, 0, ConsumeReturnType.EXCEPTION),
        (7, False, 900_000, ConsumeReturnType.RETURNNULL),
        (ConsumeConcurrentlyStatus.CONSUME_SUCCESS, False, 899_999, ConsumeReturnType.SUCCESS),
        (ConsumeConcurrentlyStatus.CONSUME_SUCCESS, False, 900_000, ConsumeReturnType.TIME_OUT),
        (ConsumeConcurrentlyStatus.RECONSUME_LATER, False, 900_000, ConsumeReturnType.TIME_OUT),
        (ConsumeConcurrentlyStatus.RECONSUME_LATER, False, 0, ConsumeReturnType.FAILED),
        (ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT, False, 0, ConsumeReturnType.FAILED),
        (ConsumeOrderlyStatus.ROLLBACK, False, 0, ConsumeReturnType.SUCCESS),
        (None, False, 0, ConsumeReturnType.SUCCESS),
    ],
)
def test_hooks_get_the_outcome_of_a_call(
    returned: object, raised: bool, took_ms: int, expected: ConsumeReturnType
):
    assert return_type(returned, raised=raised, took_ms=took_ms, timeout_ms=900_000) is expected


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (None, CMResult.CR_SUCCESS),
        (ConsumeConcurrentlyStatus.CONSUME_SUCCESS, CMResult.CR_SUCCESS),
        (ConsumeConcurrentlyStatus.RECONSUME_LATER, CMResult.CR_LATER),
        (ConsumeOrderlyStatus.SUCCESS, CMResult.CR_SUCCESS),
        (ConsumeOrderlyStatus.COMMIT, CMResult.CR_COMMIT),
        (ConsumeOrderlyStatus.ROLLBACK, CMResult.CR_ROLLBACK),
        (ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT, CMResult.CR_LATER),
    ],
)
def test_a_direct_call_is_answered_with_its_result(returned: object, expected: CMResult):
    assert direct_result(returned, raised=False) is expected
    assert direct_result(returned, raised=True) is CMResult.CR_THROW_EXCEPTION
