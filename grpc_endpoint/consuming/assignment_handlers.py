"""QueryAssignment: what a push consumer receives from.

Each broker with readable queues is one assignment of any queue (-1), for every member alike: the broker shares its
messages out. Only a group that consumes in order gets each queue by itself. Mirrors `RouteActivity.queryAssignment`.
"""

from collections.abc import Iterator
from typing import Final

from pocketmq.protocol.message.flags import is_readable, is_writeable

from ..calls.refusals import RpcRefused
from ..calls.registry import rpc
from ..calls.rpc_call import HELD, Held, RpcCall
from ..forms.names import checked_group, checked_topic
from ..messages import (
    OK,
    Assignment,
    Broker,
    Code,
    MessageQueue,
    Permission,
    QueryAssignmentRequest,
    QueryAssignmentResponse,
)
from ..producing.routes import RoutedBroker, TopicRoute, topic_not_found
from .consuming import Consuming

ANY_QUEUE: Final = -1
MASTER_ID: Final = 0


@rpc(QueryAssignmentRequest)
def query_assignment(consuming: Consuming, request: QueryAssignmentRequest, call: RpcCall) -> Held:
    """The group need not exist, and the client need not be a member."""
    consuming.clients.checked(call, request)
    topic = checked_topic(request.topic, consuming.broker.topics)
    group = checked_group(request.group)
    config = consuming.broker.groups.find(group)
    is_fifo = config is not None and config.consume_message_orderly

    def found(route: TopicRoute | None) -> None:
        try:
            if route is None:
                raise topic_not_found(topic)
            assignments = [
                Assignment(message_queue=queue)
                for broker in route.brokers
                for queue in _queues(request, broker, is_fifo=is_fifo)
            ]
            if not assignments:
                raise RpcRefused(Code.FORBIDDEN, "no readable queue")
        except RpcRefused as refused:
            call.answer(QueryAssignmentResponse(status=refused.status))
        else:
            call.answer(QueryAssignmentResponse(status=OK, assignments=assignments))

    consuming.routes.when_found(topic, found)
    return HELD


def _queues(
    request: QueryAssignmentRequest, broker: RoutedBroker, *, is_fifo: bool
) -> Iterator[MessageQueue]:
    endpoints = broker.endpoints.get(MASTER_ID)
    if endpoints is None or not is_readable(broker.perm) or broker.read_queues <= 0:
        return
    for queue_id in range(broker.read_queues) if is_fifo else (ANY_QUEUE,):
        yield MessageQueue(
            topic=request.topic,
            id=queue_id,
            permission=Permission.READ_WRITE if is_writeable(broker.perm) else Permission.READ,
            broker=Broker(name=broker.name, id=MASTER_ID, endpoints=endpoints),
        )
