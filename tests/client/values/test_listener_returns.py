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
SUCCESS, LATER = ConsumeConcurrentlyStatus.CONSUME_SUCCESS, ConsumeConcurrentlyStatus.RECONSUME_LATER
IN_ORDER, MOMENT = ConsumeOrderlyStatus.SUCCESS, ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
ROLLBACK, COMMIT = ConsumeOrderlyStatus.ROLLBACK, ConsumeOrderlyStatus.COMMIT
LIMIT_MS = 900_000


@pytest.mark.parametrize(
    ("returned", "concurrent", "ordered", "outcome", "direct"),
    [
        (None, SUCCESS, IN_ORDER, ConsumeReturnType.SUCCESS, CMResult.CR_SUCCESS),
        (SUCCESS, SUCCESS, MOMENT, ConsumeReturnType.SUCCESS, CMResult.CR_SUCCESS),
        (LATER, LATER, MOMENT, ConsumeReturnType.FAILED, CMResult.CR_LATER),
        (IN_ORDER, LATER, IN_ORDER, ConsumeReturnType.SUCCESS, CMResult.CR_SUCCESS),
        (MOMENT, LATER, MOMENT, ConsumeReturnType.FAILED, CMResult.CR_LATER),
        (ROLLBACK, LATER, ROLLBACK, ConsumeReturnType.SUCCESS, CMResult.CR_ROLLBACK),
        (COMMIT, LATER, COMMIT, ConsumeReturnType.SUCCESS, CMResult.CR_COMMIT),
        *(
            (nonsense, LATER, MOMENT, ConsumeReturnType.RETURNNULL, CMResult.CR_RETURN_NULL)
            for nonsense in (True, False, 0, 7, "CONSUME_SUCCESS", object(), [])
        ),
    ],
)
def test_each_value_has_one_meaning(
    returned: object,
    concurrent: ConsumeConcurrentlyStatus,
    ordered: ConsumeOrderlyStatus,
    outcome: ConsumeReturnType,
    direct: CMResult,
):
    assert (status_of(returned, CONCURRENT), status_of(returned, ORDERLY)) == (concurrent, ordered)
    assert is_unknown_status(returned) is (direct is CMResult.CR_RETURN_NULL)
    assert return_type(returned, raised=False, took_ms=0, timeout_ms=LIMIT_MS) is outcome
    assert direct_result(returned, raised=False) is direct
    assert direct_result(returned, raised=True) is CMResult.CR_THROW_EXCEPTION


@pytest.mark.parametrize(
    ("returned", "raised", "took_ms", "expected"),
    [
        (None, True, 0, ConsumeReturnType.EXCEPTION),
        (7, False, LIMIT_MS, ConsumeReturnType.RETURNNULL),
        (SUCCESS, False, LIMIT_MS - 1, ConsumeReturnType.SUCCESS),
        (SUCCESS, False, LIMIT_MS, ConsumeReturnType.TIME_OUT),
        (LATER, False, LIMIT_MS, ConsumeReturnType.TIME_OUT),
    ],
)
def test_hooks_are_told_of_exceptions_and_of_calls_that_took_too_long(
    returned: object, raised: bool, took_ms: int, expected: ConsumeReturnType
):
    assert return_type(returned, raised=raised, took_ms=took_ms, timeout_ms=LIMIT_MS) is expected
