"""The part of a broker that knows users and their rights (`Access`), and the guard of the 5.x line: it checks the
signature and the rights of every request before its handler runs.

    authenticationEnabled     5.x: an existing, enabled user must have signed the request
    authorizationEnabled      5.x: that user must have the right, or be a super user
    aclEnable                 4.9: the access keys of plain_acl.yml, see `plain_acl.py`

A refused request gets NO_PERMISSION in 5.x and SYSTEM_ERROR in the 4.9 line; a refused one-way request is dropped.
Replies to our own requests are not checked. A broker without any of the three settings has no guard, and its requests
cost nothing extra. Mirrors the authentication and authorization pipelines of 5.x and the RPC hook of 4.9.
"""

import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from pocketmq.protocol.bodies.body import Body
from pocketmq.protocol.bodies.security import UserInfo
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.wire.command import Command, RawBody
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.signatures import ACCESS_KEY, SIGNATURE, signature_of, signed_content

from ..config.addresses import EVERY_ADDRESS
from ..config.broker_config import BrokerConfig
from ..errors import Refusal, StartError
from ..network.server_context import Guard, Signer
from ..state.broker_state import BrokerState
from ..state.part import Part
from ..time.periodic import Periodic
from .access_rules import needs_of
from .authorization import refusal
from .plain_acl import PlainAcl
from .signatures import is_signed_with
from .user_table import DISABLE, SUPER, AclTable, UserTable

_log = logging.getLogger("pocketmq.access")

PLAIN_ACL_SECONDS: Final = 0.5
MAX_NEEDS: Final = 2000
"""Of one request: each is compared with the rules of its user."""
_TRY_AGAIN: Final = "Authorization failed. Please verify your access rights and try again."


class _Credentials(Body, frozen=True):
    """The JSON value of innerClientAuthenticationCredentials."""

    access_key: str | None = None
    secret_key: str | None = None


class AccessControl:
    """The guard of 5.x. `users` and `acls` may change at any time; each request is checked against the current ones."""

    def __init__(self, config: BrokerConfig, users: UserTable, acls: AclTable) -> None:
        self._authenticates = config.authentication_enabled
        self._authorizes = config.authorization_enabled
        self._not_authenticated = _codes(config.authentication_whitelist)
        self._not_authorized = _codes(config.authorization_whitelist)
        self._cluster = config.broker_cluster_name
        self._users = users
        self._acls = acls

    def __call__(self, command: Command, peer: str) -> None:
        if self._authenticates and command.code not in self._not_authenticated:
            self._authenticate(command)
        if self._authorizes and command.code not in self._not_authorized:
            self._authorize(command, peer)

    def _authenticate(self, command: Command) -> None:
        name = (command.fields or {}).get(ACCESS_KEY)
        if not name:
            raise _forbidden("username cannot be null.")
        user = self._enabled_user(name, f"User:{name} is not found.")
        if not is_signed_with(user.password or "", command, is_5=True):
            raise _forbidden("check signature failed.")

    def _authorize(self, command: Command, peer: str) -> None:
        try:
            needs = needs_of(command, self._cluster)
        except BodyError as error:
            raise _forbidden("parse authorization context error.") from error
        if len(needs) > MAX_NEEDS:
            raise _forbidden(f"the request needs {len(needs)} rights; the limit is {MAX_NEEDS}")
        if not needs:
            return
        name = (command.fields or {}).get(ACCESS_KEY)
        if name is None:
            raise _forbidden(_TRY_AGAIN)
        user = self._enabled_user(name, f"User:{name} not found.")
        if user.user_type == SUPER:
            return
        subject = f"User:{name}"
        acl = self._acls.find(subject)
        source = peer.rpartition(":")[0]
        for need in needs:
            reason = refusal(subject, acl, need, source)
            if reason is not None:
                raise _forbidden(reason)

    def _enabled_user(self, name: str, absent: str) -> UserInfo:
        user = self._users.find(name)
        if user is None:
            raise _forbidden(absent)
        if user.user_status == DISABLE:
            raise _forbidden(f"User:{name} is disabled.")
        return user


def _forbidden(remark: str) -> Refusal:
    return Refusal(ResponseCode.NO_PERMISSION, remark)


def _codes(text: str) -> frozenset[int]:
    return frozenset(int(code) for code in text.split(",") if code.strip().isdecimal())


def make_first_users(config: BrokerConfig, users: UserTable) -> None:
    """Create the super users named in broker.conf, unless they exist. Raises `StartError` if the setting is not the
    expected JSON; the message does not repeat the value, because it contains a password."""
    if config.init_authentication_user:
        try:
            user = UserInfo.decode(config.init_authentication_user.encode())
        except BodyError:
            raise StartError(
                'initAuthenticationUser must have the form {"username":...,"password":...}'
            ) from None
        _make_super(users, user.username, user.password, "initAuthenticationUser")
    if config.inner_client_authentication_credentials:
        inner = _inner_credentials(config)
        _make_super(users, inner.access_key, inner.secret_key, "innerClientAuthenticationCredentials")


def signer_of(config: BrokerConfig) -> Signer | None:
    """Signs our own requests to name servers and masters, with innerClientAuthenticationCredentials."""
    if not config.inner_client_authentication_credentials:
        return None
    inner = _inner_credentials(config)

    def sign(command: Command, body: RawBody | None) -> None:
        fields = dict(command.fields or {})
        fields[ACCESS_KEY] = inner.access_key or ""
        command.fields, command.body = fields, body
        fields[SIGNATURE] = signature_of(signed_content(fields, body), inner.secret_key or "")
        command.body = None

    return sign


def _inner_credentials(config: BrokerConfig) -> _Credentials:
    try:
        return _Credentials.decode(config.inner_client_authentication_credentials.encode())
    except BodyError:
        reason = 'innerClientAuthenticationCredentials must have the form {"accessKey":...,"secretKey":...}'
        raise StartError(reason) from None


def _make_super(users: UserTable, name: str | None, password: str | None, key: str) -> None:
    if not name or not password:
        raise StartError(f"{key} must contain a user name and a password")
    if users.find(name) is None:
        users.create(UserInfo(username=name, password=password, user_type=SUPER))


def warn_if_open(config: BrokerConfig, host: str) -> None:
    """Log a warning if the broker accepts every request from other machines."""
    is_local = host.startswith("127.") or host in ("::1", "localhost")
    if not is_local and not (config.authentication_enabled or config.acl_enable):
        where = "every address" if host in EVERY_ADDRESS else host
        _log.warning(
            "listening on %s without access control: every client that reaches it may read, write and delete "
            "everything; set authenticationEnabled (or aclEnable), or listen on 127.0.0.1",
            where,
        )


class Access(Part):
    """Call `open` after the tables are read."""

    def __init__(self, state: BrokerState) -> None:
        super().__init__(state)
        config = state.config
        self.users = UserTable(state.folder, state.clock.now_ms)
        self.acls = AclTable(state.folder, state.clock.now_ms, self.users)
        self.own_tables = (self.users, self.acls)
        for table in self.own_tables:
            table.on_change = partial(state.tables.save_soon, table)
        self.plain_acl: PlainAcl | None = None
        """`None` without aclEnable."""
        if config.acl_enable:
            self.plain_acl = PlainAcl(Path(config.rocketmq_home or config.store.root) / "conf")
        self.guard = self._make_guard()
        """Checks every request before its handler runs; `None` without access control."""

    def open(self) -> None:
        """Read the access keys, and create the users named in the settings. Raises `StartError` if either fails."""
        if self.plain_acl is not None:
            self.plain_acl.load()
        if self.config.is_5:
            make_first_users(self.config, self.users)

    def periodic(self) -> Iterator[Periodic]:
        if self.plain_acl is not None:
            yield Periodic("plain acl", PLAIN_ACL_SECONDS, self.plain_acl.reload_if_changed)

    def _make_guard(self) -> Guard | None:
        config = self.config
        guards: list[Guard] = []
        if self.plain_acl is not None:
            guards.append(self.plain_acl)
        if config.is_5 and (config.authentication_enabled or config.authorization_enabled):
            guards.append(AccessControl(config, self.users, self.acls))

        def ask_all(command: Command, peer: str) -> None:
            for guard in guards:
                guard(command, peer)

        return ask_all if len(guards) > 1 else guards[0] if guards else None
