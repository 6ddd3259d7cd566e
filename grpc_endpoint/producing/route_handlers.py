"""QueryRoute: the queues of a topic, and where to reach their brokers. Mirrors `RouteActivity`."""

from collections.abc import Iterator

from pocketmq.protocol.message.flags import is_readable, is_writeable

from ..calls.handler import ANSWERS_LATER, Deferred
from ..calls.rpc_call import RpcCall
from ..conversion.message_types import accepted_types
from ..conversion.names import checked_topic
from ..messages import (
    OK,
    Broker,
    MessageQueue,
    Permission,
    QueryRouteRequest,
    QueryRouteResponse,
    Resource,
)
from .producing import Producing
from .routes import RoutedBroker, TopicRoute, topic_not_found


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
