"""QueryAssignment: what a push consumer receives from.

Each broker with readable queues is one assignment of any queue (-1), for every member alike: the broker shares its
messages out. Only a group that consumes in order gets each queue by itself. Mirrors `RouteActivity.queryAssignment`.
"""

from typing import Final

from pocketmq.protocol.message.flags import is_readable, is_writeable

from ..calls.handler import ANSWERS_LATER, Deferred, RpcRefused
from ..calls.rpc_call import RpcCall
from ..conversion.names import checked_group, checked_topic
from ..messages import (
    OK,
    Assignment,
    Broker,
    Code,
    MessageQueue,
    Permission,
    QueryAssignmentRequest,
    QueryAssignmentResponse,
    Resource,
)
from ..producing.routes import RoutedBroker, TopicRoute, topic_not_found
from .consuming import Consuming

ANY_QUEUE: Final = -1
MASTER_ID: Final = 0


def query_assignment(consuming: Consuming, request: QueryAssignmentRequest, call: RpcCall) -> Deferred:
    """The group need not exist, and the client need not be a member."""
    consuming.clients.check(call, request)
    topic = checked_topic(request.topic, consuming.broker.topics)
    group = checked_group(request.group)
    config = consuming.broker.groups.find(group)
    is_fifo = config is not None and config.consume_message_orderly

    def found(route: TopicRoute | None) -> None:
        reply = QueryAssignmentResponse(status=OK)
        try:
            if route is None:
                raise topic_not_found(topic)
            for broker in route.brokers:
                _add_queues(reply, request.topic, broker, is_fifo=is_fifo)
            if not reply.assignments:
                raise RpcRefused(Code.FORBIDDEN, "no readable queue")
        except RpcRefused as refused:
            call.answer(QueryAssignmentResponse(status=refused.status))
        else:
            call.answer(reply)

    consuming.routes.lookup(topic, found)
    return ANSWERS_LATER


def _add_queues(
    reply: QueryAssignmentResponse, topic: Resource, broker: RoutedBroker, *, is_fifo: bool
) -> None:
    endpoints = broker.endpoints.get(MASTER_ID)
    if endpoints is None or not is_readable(broker.perm) or broker.read_queues <= 0:
        return
    queue = MessageQueue(
        topic=topic,
        id=ANY_QUEUE,
        permission=Permission.READ_WRITE if is_writeable(broker.perm) else Permission.READ,
        broker=Broker(name=broker.name, id=MASTER_ID, endpoints=endpoints),
    )
    first, count = len(reply.assignments), broker.read_queues if is_fifo else 1
    reply.assignments.extend([Assignment(message_queue=queue)] * count)
    if is_fifo:
        for queue_id, added in enumerate(reply.assignments[first:]):
            added.message_queue.id = queue_id
