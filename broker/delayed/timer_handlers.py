"""Requests about the timer: 60 and 61 answer its state to slaves and tools. Mirrors `AdminBrokerProcessor`."""

from pocketmq.protocol.requests.replication import GetTimerCheckPoint, GetTimerMetrics
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import StoreError

from ..errors import Refusal
from ..network.dispatch import Answer, handles
from .delayed import Delayed


@handles(GetTimerCheckPoint)
def get_timer_check_point(delayed: Delayed, request: GetTimerCheckPoint) -> Answer:
    """The checkpoint of the timer, in the form of its file."""
    if not delayed.timer.is_served:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "The checkpoint is null")
    try:
        return Answer(body=delayed.timer.checkpoint())
    except StoreError as error:
        raise Refusal(ResponseCode.SYSTEM_ERROR, str(error)) from error


@handles(GetTimerMetrics)
def get_timer_metrics(delayed: Delayed, request: GetTimerMetrics) -> Answer:
    """The number of waiting messages of each topic, in the form of the file."""
    if not delayed.timer.is_served:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "The timerMessageStore is null")
    return Answer(body=delayed.timer.metrics.to_json())
