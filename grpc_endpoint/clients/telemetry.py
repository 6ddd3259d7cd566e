"""What a client says about itself: its settings, that it is still there, that it ends.

    settings                of a producer: its topics; of a consumer: its group and subscriptions. Answered with the
                            settings that the client shall use (`merged_settings.py`)
    thread_stack_trace,     answers to questions (`peer.py`)
    verify_message_result

The first arrives on the telemetry stream. Commands to a client are sent on the stream on which it last sent settings.
The end of a stream changes nothing: the client opens the next one. Heartbeat and NotifyClientTermination go by the
settings that a stream has brought; the client type of a heartbeat is not looked at. Mirrors `ClientActivity`.
"""

from typing import Final

from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.languages import LANGUAGE_CODES

from ..calls.handler import GrpcStatus, RpcFailed, RpcRefused
from ..calls.rpc_call import RpcCall
from ..conversion.names import checked_group, checked_topic
from ..messages import (
    OK,
    ClientType,
    Code,
    HeartbeatRequest,
    HeartbeatResponse,
    NotifyClientTerminationRequest,
    NotifyClientTerminationResponse,
    Settings,
    TelemetryCommand,
    client_type_name,
)
from ..messages.proto import Message
from .clients import Clients
from .merged_settings import consumer_settings, producer_settings
from .registration import register_consumer, register_producer

_CONSUMERS: Final = (ClientType.PUSH_CONSUMER, ClientType.SIMPLE_CONSUMER, ClientType.LITE_PUSH_CONSUMER)
_LITE: Final = (ClientType.LITE_PUSH_CONSUMER, ClientType.LITE_SIMPLE_CONSUMER)
_LITE_BIND_TOPIC: Final = "lite.bind.topic"
_MEMBERS: Final = (
    ClientType.PUSH_CONSUMER,
    ClientType.SIMPLE_CONSUMER,
    ClientType.PULL_CONSUMER,
    ClientType.LITE_PUSH_CONSUMER,
)
"""Types with which a client stays in its group."""
_UNKNOWN: Final = "cannot find client settings for this client"
_ENUM: Final = "No enum constant org.apache.rocketmq.remoting.protocol.LanguageCode."


class TelemetryStream:
    """The client's side of one stream."""

    def __init__(self, clients: Clients, call: RpcCall) -> None:
        self._clients = clients
        self._call = call

    def received(self, message: Message) -> None:
        """Raises `RpcRefused` for a stream that may not be, `RpcFailed` for settings that are refused."""
        assert isinstance(message, TelemetryCommand)
        self._clients.check(self._call, message)
        if message.HasField("settings"):
            try:
                settings = self._settled(message.settings)
            except RpcRefused as refused:
                raise _failure(refused) from None
            self._call.send(TelemetryCommand(status=OK, settings=settings))
        elif message.HasField("thread_stack_trace"):
            self._clients.commands.on_answer(message.thread_stack_trace.nonce, message)
        elif message.HasField("verify_message_result"):
            self._clients.commands.on_answer(message.verify_message_result.nonce, message)

    def closed(self) -> None:
        """The client sends nothing more on this stream: neither do we."""
        peer = self._clients.find(self._call.client_id)
        if peer is not None and peer.stream is self._call:
            peer.stream = None
        self._call.end()

    def _settled(self, sent: Settings) -> Settings:
        """Register the client, and keep and return its settings."""
        self._clients.check_size(self._call.client_id, sent)
        if sent.HasField("publishing"):
            return self._producer(sent)
        if sent.HasField("subscription"):
            return self._consumer(sent)
        text = "there is no publishing or subscription data in settings"
        raise RpcFailed(GrpcStatus.INVALID_ARGUMENT, text)

    def _producer(self, sent: Settings) -> Settings:
        clients = self._clients
        topics = [checked_topic(topic, clients.topics) for topic in sent.publishing.topics]
        self._check_language()
        settings = producer_settings(sent, clients.config, clients.broker.config.store.max_message_size)
        peer = clients.registered(self._call)
        register_producer(clients.membership, peer, topics)
        peer.stream = self._call
        clients.store_settings(peer, settings)
        return settings

    def _consumer(self, sent: Settings) -> Settings:
        clients = self._clients
        group = checked_group(sent.subscription.group)
        self._check_language()
        _check_type(sent.client_type)
        group_config = clients.groups.find(group)
        if group_config is None and not clients.config.grpc_strict:
            group_config = clients.groups.find_or_create(group)
        if group_config is None:
            raise RpcRefused(Code.CONSUMER_GROUP_NOT_FOUND, f"group not found: {group}")
        _check_lite(sent, group, group_config)
        settings = consumer_settings(sent, group_config, clients.config)
        peer = clients.registered(self._call)
        register_consumer(clients.membership, peer, group, settings, is_new=True)
        peer.stream = self._call
        clients.store_settings(peer, settings)
        return settings

    def _check_language(self) -> None:
        language = self._call.language
        if language not in LANGUAGE_CODES:
            text = f"{_ENUM}{language[:64]}" if language else "Name is null"
            raise RpcRefused(Code.INTERNAL_SERVER_ERROR, text)


def _check_type(client_type: int) -> None:
    if client_type not in _CONSUMERS:
        text = f"Client type is not consumer, type: {client_type_name(client_type)}"
        raise RpcRefused(Code.INTERNAL_SERVER_ERROR, text)


def _check_lite(sent: Settings, group: str, group_config: SubscriptionGroupConfig) -> None:
    """A lite consumer needs a group that is bound to a topic, and such a group has lite consumers only."""
    bound = group_config.attributes.get(_LITE_BIND_TOPIC)
    if sent.client_type not in _LITE:
        if bound is not None:
            raise RpcRefused(Code.ILLEGAL_CONSUMER_GROUP, f"lite group must use LITE mode: {group}")
        return
    if bound is None:
        raise RpcRefused(Code.ILLEGAL_CONSUMER_GROUP, f"regular group cannot use LITE mode: {group}")
    for entry in sent.subscription.subscriptions:
        if entry.topic.name != bound:
            text = f"lite group {group} is expected to bind topic {bound}, but actual is {entry.topic.name}"
            raise RpcRefused(Code.ILLEGAL_TOPIC, text)


def _failure(refused: RpcRefused) -> RpcFailed:
    """Refused settings end the stream with a gRPC status."""
    is_clients_mistake = 40_000 <= refused.code < 50_000
    status = GrpcStatus.INVALID_ARGUMENT if is_clients_mistake else GrpcStatus.INTERNAL
    return RpcFailed(status, f"process client telemetryCommand failed. {refused.text}")


# -- a client is still there, or ends


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
        topics = [topic.name for topic in settings.publishing.topics]
        register_producer(clients.membership, clients.registered(call), topics)
    else:
        _check_consumer(settings)
        group = checked_group(request.group)
        register_consumer(clients.membership, clients.registered(call), group, settings, is_new=False)
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
            clients.membership.consumers.unregister(group, peer, is_notified=False)
    if peer is not None:
        clients.forget(peer)
    return NotifyClientTerminationResponse(status=OK)


def _check_consumer(settings: Settings) -> None:
    if settings.client_type not in _MEMBERS:
        raise RpcRefused(Code.UNRECOGNIZED_CLIENT_TYPE, client_type_name(settings.client_type))
