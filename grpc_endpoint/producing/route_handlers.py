"""QueryRoute: the queues of a topic, and where to reach their brokers. QueryAssignment: what a consumer receives from.

Each broker with readable queues is one assignment of any queue (-1), for every member alike: the broker shares its
messages out. Only a group that consumes in order gets each queue by itself. Mirrors `RouteActivity`.
"""

from collections.abc import Iterator
from typing import Final

from pocketmq.protocol.message.flags import is_readable, is_writeable

from ..calls.handler import ANSWERS_LATER, Deferred, RpcRefused
from ..calls.rpc_call import RpcCall
from ..conversion.message_types import accepted_types
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
    QueryRouteRequest,
    QueryRouteResponse,
    Resource,
)
from .producing import Producing
from .routes import RoutedBroker, TopicRoute, topic_not_found

ANY_QUEUE: Final = -1
MASTER_ID: Final = 0


def query_route(producing: Producing, request: QueryRouteRequest, call: RpcCall) -> Deferred:
    """The endpoints of the request are not looked at. The topic is named in the reply as in the request."""
    producing.clients.check(call, request)
    topic = checked_topic(request.topic, producing.topics)

    def found(route: TopicRoute | None) -> None:
        if route is None:
            call.answer(QueryRouteResponse(status=topic_not_found(topic).status))
        else:
            reply = QueryRouteResponse(status=OK)
            _add_queues(reply, route, request.topic)
            call.answer(reply)

    producing.routes.lookup(topic, found)
    return ANSWERS_LATER


def _add_queues(reply: QueryRouteResponse, route: TopicRoute, topic: Resource) -> None:
    """Each queue once for each broker that has it, slaves too. There may be 16,384: protobuf copies them in one go,
    then each gets its id and permission."""
    types = accepted_types(route.message_type)
    for broker in route.brokers:
        permissions = list(_permissions(broker))
        for broker_id, endpoints in broker.endpoints.items():
            named = Broker(name=broker.name, id=broker_id, endpoints=endpoints)
            queue = MessageQueue(topic=topic, broker=named, accept_message_types=types)
            first = len(reply.message_queues)
            reply.message_queues.extend([queue] * len(permissions))
            for queue_id, added in enumerate(reply.message_queues[first:]):
                added.id, added.permission = queue_id, permissions[queue_id]


def _permissions(broker: RoutedBroker) -> Iterator[int]:
    """Of each queue: those that can only be read, only be written, both; this is the official order."""
    read, write, both, none = 0, 0, 0, 0
    if is_readable(broker.perm) and is_writeable(broker.perm):
        both = min(broker.read_queues, broker.write_queues)
        read, write = broker.read_queues - both, broker.write_queues - both
    elif is_writeable(broker.perm):
        write = broker.write_queues
    elif is_readable(broker.perm):
        read = broker.read_queues
    else:
        none = max(1, broker.read_queues, broker.write_queues)
    yield from [Permission.READ] * read
    yield from [Permission.WRITE] * write
    yield from [Permission.READ_WRITE] * both
    yield from [Permission.NONE] * none


def query_assignment(producing: Producing, request: QueryAssignmentRequest, call: RpcCall) -> Deferred:
    """The group need not exist, and the client need not be a member."""
    producing.clients.check(call, request)
    topic = checked_topic(request.topic, producing.topics)
    group = checked_group(request.group)
    config = producing.clients.groups.find(group)
    is_fifo = config is not None and config.consume_message_orderly

    def found(route: TopicRoute | None) -> None:
        reply = QueryAssignmentResponse(status=OK)
        try:
            if route is None:
                raise topic_not_found(topic)
            for broker in route.brokers:
                _add_assignments(reply, request.topic, broker, is_fifo=is_fifo)
            if not reply.assignments:
                raise RpcRefused(Code.FORBIDDEN, "no readable queue")
        except RpcRefused as refused:
            call.answer(QueryAssignmentResponse(status=refused.status))
        else:
            call.answer(reply)

    producing.routes.lookup(topic, found)
    return ANSWERS_LATER


def _add_assignments(
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
