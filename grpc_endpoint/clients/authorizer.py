"""Authentication and authorization of every request, before its own checks: users, signatures, rights.

    authenticationEnabled   an existing, enabled user must have signed the request
    authorizationEnabled    that user must have the rights that the request needs, or be a super user

The settings, users and rights are those of the broker's other port (`pocketmq.broker.access`). The white lists name
requests as `apache.rocketmq.v2.QueryRouteRequest`.
"""

from typing import Any

from pocketmq.broker.access.access import Access
from pocketmq.broker.access.authorization import refusal
from pocketmq.broker.access.user_table import DISABLE, SUPER
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.errors import StartError
from pocketmq.protocol.bodies.security import UserInfo

from ..calls.rpc_call import RpcCall
from .rights import required_permissions
from .signatures import Signed, is_signed_with, read_signature, unauthorized

_PACKAGE = "apache.rocketmq.v2."


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
