"""Heartbeat: a client is still there. NotifyClientTermination: it ends.

Both go by the settings of the client, which a telemetry stream has brought; the client type of a heartbeat is not
looked at. Mirrors `ClientActivity`.
"""

from typing import Final

from ..calls.handler import RpcRefused
from ..calls.rpc_call import RpcCall
from ..conversion.names import checked_group
from ..messages import (
    OK,
    ClientType,
    Code,
    HeartbeatRequest,
    HeartbeatResponse,
    NotifyClientTerminationRequest,
    NotifyClientTerminationResponse,
    Settings,
    client_type_name,
)
from .clients import Clients

_CONSUMERS: Final = (
    ClientType.PUSH_CONSUMER,
    ClientType.SIMPLE_CONSUMER,
    ClientType.PULL_CONSUMER,
    ClientType.LITE_PUSH_CONSUMER,
)
_UNKNOWN: Final = "cannot find client settings for this client"


def heartbeat(clients: Clients, request: HeartbeatRequest, call: RpcCall) -> HeartbeatResponse:
    """Renew the registrations of a client."""
    settings = clients.settings_of(call.client_id)
    if settings is not None and not settings.HasField("publishing"):
        # The official proxy asks for the right to the group only if the heartbeat says that a consumer sends it, and
        # then goes by the settings: without a type, any client could join any group.
        request.client_type = ClientType.PUSH_CONSUMER
    clients.check(call, request)
    if settings is None:
        raise RpcRefused(Code.UNRECOGNIZED_CLIENT_TYPE, _UNKNOWN)
    if settings.HasField("publishing"):
        clients.registration.producer(clients.registered(call), _topics(settings))
    else:
        _check_consumer(settings)
        group = checked_group(request.group)
        clients.registration.consumer(clients.registered(call), group, settings, is_new=False)
    return HeartbeatResponse(status=OK)


def notify_client_termination(
    clients: Clients, request: NotifyClientTerminationRequest, call: RpcCall
) -> NotifyClientTerminationResponse:
    """Forget a client. Its telemetry stream stays open until the client closes it."""
    clients.check(call, request)
    settings = clients.forget_settings(call.client_id)
    if settings is None:
        raise RpcRefused(Code.UNRECOGNIZED_CLIENT_TYPE, _UNKNOWN)
    peer = clients.find(call.client_id)
    if not settings.HasField("publishing"):
        _check_consumer(settings)
        group = checked_group(request.group)
        if peer is not None:
            clients.registration.consumer_left(peer, group)
    elif peer is not None:
        clients.registration.producer_left(peer, _topics(settings))
    if peer is not None:
        clients.forget(peer)
    return NotifyClientTerminationResponse(status=OK)


def _topics(settings: Settings) -> list[str]:
    return [topic.name for topic in settings.publishing.topics]


def _check_consumer(settings: Settings) -> None:
    if settings.client_type not in _CONSUMERS:
        raise RpcRefused(Code.UNRECOGNIZED_CLIENT_TYPE, client_type_name(settings.client_type))
