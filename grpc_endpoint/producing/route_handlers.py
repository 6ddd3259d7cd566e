"""QueryRoute: the queues of a topic, and where to reach their brokers. Mirrors `RouteActivity`."""

from collections.abc import Iterator

from pocketmq.protocol.message.flags import is_readable, is_writeable

from ..calls.registry import rpc
from ..calls.rpc_call import HELD, Held, RpcCall
from ..forms.message_types import accepted_types
from ..forms.names import checked_topic
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


@rpc(QueryRouteRequest)
def query_route(producing: Producing, request: QueryRouteRequest, call: RpcCall) -> Held:
    """The endpoints of the request are not looked at. The topic is named in the reply as in the request."""
    producing.clients.check(call, request)
    topic = checked_topic(request.topic, producing.topics)

    def found(route: TopicRoute | None) -> None:
        if route is None:
            call.answer(QueryRouteResponse(status=topic_not_found(topic).status))
        else:
            call.answer(QueryRouteResponse(status=OK, message_queues=_queues(route, request.topic)))

    producing.routes.when_found(topic, found)
    return HELD


def _queues(route: TopicRoute, topic: Resource) -> list[MessageQueue]:
    """Each queue once for each broker that has it, slaves too."""
    types = accepted_types(route.message_type)
    return [
        MessageQueue(
            topic=topic,
            id=queue_id,
            permission=permission,
            broker=Broker(name=broker.name, id=broker_id, endpoints=endpoints),
            accept_message_types=types,
        )
        for broker in route.brokers
        for broker_id, endpoints in broker.endpoints.items()
        for queue_id, permission in enumerate(_permissions(broker))
    ]


def _permissions(broker: RoutedBroker) -> Iterator[Permission]:
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
