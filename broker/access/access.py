"""The part of a broker that knows users and their rights, and refuses requests without them."""

from pathlib import Path

from pocketmq.protocol.wire.command import Command

from ..network.server_context import Guard
from ..state.broker_state import BrokerState
from ..tables.json_table import JsonTable
from ..time.periodic import Periodic
from .access_control import AccessControl, make_first_users
from .plain_acl import PlainAcl
from .user_table import AclTable, UserTable

PLAIN_ACL_SECONDS = 0.5


class Access:
    """Call `open` after the tables are read."""

    def __init__(self, state: BrokerState) -> None:
        config, tables = state.config, state.tables
        self.config = config
        self.clock = state.clock
        self.tables = tables
        self.identity = state.identity
        self.users = UserTable(state.folder, state.clock.now_ms, lambda: tables.save_soon(self.users))
        self.acls = AclTable(
            state.folder, state.clock.now_ms, self.users, lambda: tables.save_soon(self.acls)
        )
        self.plain_acl: PlainAcl | None = None
        """`None` without aclEnable."""
        if config.acl_enable:
            self.plain_acl = PlainAcl(Path(config.rocketmq_home or config.store.root) / "conf")
        self.guard = self._make_guard()
        """Checks every request before its handler runs; `None` without access control."""

    @property
    def own_tables(self) -> tuple[JsonTable, ...]:
        return (self.users, self.acls)

    def open(self) -> None:
        """Read the access keys, and create the users named in the settings. Raises `StartError` if either fails."""
        if self.plain_acl is not None:
            self.plain_acl.load()
        if self.config.is_5:
            make_first_users(self.config, self.users)

    def periodic(self) -> tuple[Periodic, ...]:
        if self.plain_acl is None:
            return ()
        return (Periodic("plain acl", PLAIN_ACL_SECONDS, self.plain_acl.reload_if_changed),)

    def _make_guard(self) -> Guard | None:
        config = self.config
        guards: list[Guard] = []
        if self.plain_acl is not None:
            guards.append(self.plain_acl)
        if config.is_5 and (config.authentication_enabled or config.authorization_enabled):
            guards.append(AccessControl(config, self.users, self.acls))
        return guards[0] if len(guards) == 1 else _all_of(guards) if guards else None


def _all_of(guards: list[Guard]) -> Guard:
    def ask_all(command: Command, peer: str) -> None:
        for guard in guards:
            guard(command, peer)

    return ask_all
