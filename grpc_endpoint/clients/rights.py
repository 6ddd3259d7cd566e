"""The rights that a request needs: PUB and SUB on topics, SUB on groups.

`pocketmq.broker.access.authorization` decides whether a user has them. Mirrors the gRPC half of
`DefaultAuthorizationContextBuilder`, with its texts for requests that do not name what they are about.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from pocketmq.broker.access.authorization import Need, group, topic

from ..calls.handler import RpcRefused
from ..messages import (
    AckMessageRequest,
    ChangeInvisibleDurationRequest,
    ClientType,
    Code,
    EndTransactionRequest,
    ForwardMessageToDeadLetterQueueRequest,
    HeartbeatRequest,
    NotifyClientTerminationRequest,
    QueryAssignmentRequest,
    QueryRouteRequest,
    RecallMessageRequest,
    ReceiveMessageRequest,
    Resource,
    SendMessageRequest,
    TelemetryCommand,
)
from .signatures import unauthorized

_CONSUMERS: Final = (ClientType.PUSH_CONSUMER, ClientType.SIMPLE_CONSUMER, ClientType.PULL_CONSUMER)
_PUB: Final = ("Pub",)
_SUB: Final = ("Sub",)


def required_permissions(request: Any) -> list[Need]:
    """All rights that the request needs. Raises `RpcRefused` if it does not name its topic or group."""
    rule = _RULES.get(type(request))
    return [] if rule is None else rule(request)


def _pub(resource: Resource) -> list[Need]:
    return [Need(topic(_named(resource, "topic")), _PUB)]


def _sub_group(resource: Resource) -> list[Need]:
    return [Need(group(_named(resource, "group")), _SUB)]


def _sub(of_group: Resource, topics: Iterable[Resource]) -> list[Need]:
    return [*_sub_group(of_group), *(Need(topic(_named(one, "topic")), _SUB) for one in topics)]


def _named(resource: Resource, kind: str) -> str:
    if not resource.name or resource.name.isspace():
        raise unauthorized(f"{kind} is null.")
    return resource.name


def _route(request: QueryRouteRequest) -> list[Need]:
    return [Need(topic(_named(request.topic, "topic")), ("Pub", "Sub"))]


def _send(request: SendMessageRequest) -> list[Need]:
    if not request.messages:
        raise unauthorized("message is null.")
    return _pub(request.messages[0].topic)


def _of_topic(request: EndTransactionRequest | RecallMessageRequest) -> list[Need]:
    return _pub(request.topic)


def _heartbeat(request: HeartbeatRequest) -> list[Need]:
    return _sub_group(request.group) if request.client_type in _CONSUMERS else []


def _receive(request: ReceiveMessageRequest) -> list[Need]:
    return _sub(request.group, (request.message_queue.topic,))


def _of_group_and_topic(
    request: AckMessageRequest | ForwardMessageToDeadLetterQueueRequest | QueryAssignmentRequest,
) -> list[Need]:
    return _sub(request.group, (request.topic,))


def _change(request: ChangeInvisibleDurationRequest) -> list[Need]:
    return _sub_group(request.group)


def _termination(request: NotifyClientTerminationRequest) -> list[Need]:
    return _sub_group(request.group) if request.group.name else []


def _telemetry(command: TelemetryCommand) -> list[Need]:
    settings = command.settings
    if not command.HasField("settings"):
        return []
    if settings.HasField("publishing"):
        return [need for one in settings.publishing.topics for need in _pub(one)]
    if not settings.HasField("subscription"):
        raise RpcRefused(
            Code.INTERNAL_SERVER_ERROR, "settings command doesn't have publishing or subscription."
        )
    subscription = settings.subscription
    return _sub(subscription.group, (entry.topic for entry in subscription.subscriptions))


_RULES: Final[dict[type, Callable[[Any], list[Need]]]] = {
    QueryRouteRequest: _route,
    SendMessageRequest: _send,
    EndTransactionRequest: _of_topic,
    RecallMessageRequest: _of_topic,
    HeartbeatRequest: _heartbeat,
    ReceiveMessageRequest: _receive,
    AckMessageRequest: _of_group_and_topic,
    ForwardMessageToDeadLetterQueueRequest: _of_group_and_topic,
    QueryAssignmentRequest: _of_group_and_topic,
    ChangeInvisibleDurationRequest: _change,
    NotifyClientTerminationRequest: _termination,
    TelemetryCommand: _telemetry,
}
