"""Authentication and authorization of every request, before its own checks: users, signatures, rights.

    authenticationEnabled   an existing, enabled user must have signed the request
    authorizationEnabled    that user must have the rights that the request needs, or be a super user

    authorization: MQv2-HMAC-SHA1 Credential=admin, SignedHeaders=x-mq-date-time, Signature=a41438a5...
    Signature    = hex of HMAC-SHA1(the user's password, the text of x-mq-date-time)

The age of the date is not checked: the official proxy does not check it either. The settings, users and rights are
those of the broker's other port (`pocketmq.broker.access`). The white lists name requests as
`apache.rocketmq.v2.QueryRouteRequest`. Mirrors `DefaultAuthenticationContextBuilder` and the gRPC half of
`DefaultAuthorizationContextBuilder`, with their texts.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from pocketmq.broker.access.access_control import Access
from pocketmq.broker.access.authorization import Need, group, refusal, topic
from pocketmq.broker.access.user_table import DISABLE, SUPER
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.errors import StartError
from pocketmq.protocol.bodies.security import UserInfo

from ..calls.handler import RpcRefused
from ..calls.rpc_call import RpcCall
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
    Settings,
    TelemetryCommand,
)

_PACKAGE = "apache.rocketmq.v2."
_CONSUMERS: Final = (ClientType.PUSH_CONSUMER, ClientType.SIMPLE_CONSUMER, ClientType.PULL_CONSUMER)


class Signed(msgspec.Struct, frozen=True):
    """Who says that it sent the request; `content` is what was signed."""

    username: str
    content: str
    signature: bytes


def unauthorized(text: str) -> RpcRefused:
    return RpcRefused(Code.UNAUTHORIZED, text)


def read_signature(metadata: Mapping[str, str]) -> Signed:
    """Raises `RpcRefused` with UNAUTHORIZED for a header that cannot be read; without one, all parts are empty."""
    header = metadata.get("authorization")
    if header is None:
        return Signed("", "", b"")
    content = metadata.get("x-mq-date-time")
    if content is None:
        raise unauthorized("datetime is null.")
    _, blank, pairs = header.partition(" ")
    if not blank:
        raise unauthorized("authentication header is incorrect.")
    parts: dict[str, str] = {}
    for pair in pairs.split(","):
        name, equals, value = pair.strip().partition("=")
        if not equals:
            raise unauthorized("authentication keyValues length is incorrect, actual length=1.")
        parts[name.strip()] = value.strip()
    try:
        signature = bytes.fromhex(parts.get("Signature", ""))
    except ValueError:
        raise unauthorized("create authentication context error.") from None
    return Signed(parts.get("Credential", "").partition("/")[0], content, signature)


def is_signed_with(password: str, signed: Signed) -> bool:
    """Whether the signature is right. A wrong one takes as long to check as the right one."""
    import hmac  # 2 MB of OpenSSL that most brokers never need

    right = hmac.digest(password.encode(), signed.content.encode(), "sha1")
    return hmac.compare_digest(right, signed.signature)


class Authorizer:
    """`users` and `acls` may change at any time; each request is checked against the current ones."""

    def __init__(self, config: BrokerConfig, access: Access) -> None:
        self._authenticates = config.authentication_enabled
        self._authorizes = config.authorization_enabled
        self._not_authenticated = _names(config.authentication_whitelist)
        self._not_authorized = _names(config.authorization_whitelist)
        self._users = access.users
        self._acls = access.acls

    def check(self, call: RpcCall, request: Any) -> None:
        """Raises `RpcRefused` with UNAUTHORIZED."""
        name = type(request).__name__
        signed = read_signature(call.metadata)
        if self._authenticates and name not in self._not_authenticated:
            user = self._enabled(signed)
            if not is_signed_with(user.password or "", signed):
                raise unauthorized("check signature failed.")
        if self._authorizes and name not in self._not_authorized:
            self._authorize(call, request, signed)

    def _authorize(self, call: RpcCall, request: Any, signed: Signed) -> None:
        needs = required_permissions(request)
        if not needs:
            return
        user = self._enabled(signed)
        if user.user_type == SUPER:
            return
        subject = f"User:{signed.username}"
        acl = self._acls.find(subject)
        source = call.peer.rpartition(":")[0]
        for need in needs:
            reason = refusal(subject, acl, need, source)
            if reason is not None:
                raise unauthorized(reason)

    def _enabled(self, signed: Signed) -> UserInfo:
        name = signed.username
        if not name:
            raise unauthorized("username cannot be null.")
        user = self._users.find(name)
        if user is None:
            raise unauthorized(f"User:{name} is not found.")
        if user.user_status == DISABLE:
            raise unauthorized(f"User:{name} is disabled.")
        return user


def make_authorizer(config: BrokerConfig, access: Access) -> Authorizer | None:
    """`None` without access control. Raises `StartError` for the access control of the 4.9 line, which has no form for
    gRPC: the port would stand open beside guarded ones."""
    if config.acl_enable:
        raise StartError(
            "aclEnable cannot guard the gRPC port; use authenticationEnabled and authorizationEnabled"
        )
    if config.authentication_enabled or config.authorization_enabled:
        return Authorizer(config, access)
    return None


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip().removeprefix(_PACKAGE) for name in text.split(","))


# -- rights


def required_permissions(request: Any) -> list[Need]:
    """All rights that the request needs. Raises `RpcRefused` if it does not name its topic or group."""
    match request:
        case QueryRouteRequest():
            return [Need(topic(_named(request.topic, "topic")), ("Pub", "Sub"))]
        case SendMessageRequest():
            if not request.messages:
                raise unauthorized("message is null.")
            return [_pub(request.messages[0].topic)]
        case EndTransactionRequest() | RecallMessageRequest():
            return [_pub(request.topic)]
        case HeartbeatRequest():
            return _sub(request.group) if request.client_type in _CONSUMERS else []
        case ReceiveMessageRequest():
            return _sub(request.group, (request.message_queue.topic,))
        case AckMessageRequest() | ForwardMessageToDeadLetterQueueRequest() | QueryAssignmentRequest():
            return _sub(request.group, (request.topic,))
        case ChangeInvisibleDurationRequest():
            return _sub(request.group)
        case NotifyClientTerminationRequest():
            return _sub(request.group) if request.group.name else []
        case TelemetryCommand() if request.HasField("settings"):
            return _of_settings(request.settings)
    return []


def _of_settings(settings: Settings) -> list[Need]:
    if settings.HasField("publishing"):
        return [_pub(one) for one in settings.publishing.topics]
    if not settings.HasField("subscription"):
        text = "settings command doesn't have publishing or subscription."
        raise RpcRefused(Code.INTERNAL_SERVER_ERROR, text)
    subscription = settings.subscription
    return _sub(subscription.group, (entry.topic for entry in subscription.subscriptions))


def _pub(resource: Resource) -> Need:
    return Need(topic(_named(resource, "topic")), ("Pub",))


def _sub(of_group: Resource, topics: Iterable[Resource] = ()) -> list[Need]:
    needs = [Need(group(_named(of_group, "group")), ("Sub",))]
    return needs + [Need(topic(_named(one, "topic")), ("Sub",)) for one in topics]


def _named(resource: Resource, kind: str) -> str:
    if not resource.name or resource.name.isspace():
        raise unauthorized(f"{kind} is null.")
    return resource.name
