"""The HTTP port of a server: connects `pocketmq.console` with the request log, the faults and the starting state.

    async with admin_port(node, watched, host="127.0.0.1", port=0) as url: ...
    run(config, name_server, beside=[admin_port_beside("127.0.0.1", 8080)])         behind `serve --admin-port`

Imported when a port is asked for: it loads `pocketmq.console`.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

import msgspec
from pocketmq.broker.node import Node
from pocketmq.console.server import Console
from pocketmq.console.server_access import ServerAccess
from pocketmq.console.values import Words

from ..errors import WrongValueError
from ..faults.faults import Faults
from ..faults.rule_json import add_rule, known_words
from ..faults.watched_node import WatchedNodes
from ..state.reset import Mark, restore, take_mark
from ..state.snapshot import ACCESS_TABLES, Snapshot, restore_snapshot, snapshot_of, take_snapshot

MAX_RULES: Final = 1000
"""Rules that are added over HTTP; each costs every request a comparison."""


class RulesAsJson:
    """Faults as the port knows them (`console.access.Rules`)."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self.remove, self.clear = faults.remove, faults.clear

    def each(self, after: int) -> Iterator[dict[str, Any]]:
        rules = sorted(self._faults.rules, key=lambda rule: rule.id)
        return (rule.as_json() for rule in rules if rule.id > after)

    def words(self) -> Words:
        return known_words()

    def add(self, words: dict[str, Any]) -> dict[str, Any]:
        if len(self._faults.rules) >= MAX_RULES:
            raise WrongValueError(f"there are {MAX_RULES} rules already: remove some", [MAX_RULES])
        return add_rule(self._faults, words).as_json()


@asynccontextmanager
async def admin_port(
    node: Node,
    watched: WatchedNodes,
    *,
    host: str,
    port: int,
    mark: Callable[[], Mark],
    names: Sequence[str] = (),
) -> AsyncIterator[str]:
    """The port of a running node, 0 for a free one; the URL. `watched` watches the node already.

    A reset over HTTP returns to the mark. It ends all rules and empties log and ledger, too: between two tests it is
    all that a program calls.
    `StartError` if the port is taken. Clients may call this machine by one of `names`, or by the advertised one.
    """

    async def reset_all() -> None:
        watched.faults.clear()
        await restore(node, mark())
        watched.requests.clear()
        watched.forget_facts()

    async def take() -> bytes:
        """Without the users, whose passwords are plain."""
        state = (await take_snapshot(node)).state
        tables = {name: table for name, table in state.tables.items() if name not in ACCESS_TABLES}
        return Snapshot(msgspec.structs.replace(state, tables=tables)).to_bytes()

    async def bring_back(data: bytes) -> None:
        await restore_snapshot(node, snapshot_of(data, "the body"))
        ledger.clear()

    ledger = watched.keep_ledger()
    access = ServerAccess(
        lambda: node,
        RulesAsJson(watched.faults),
        watched.requests,
        ledger=ledger,
        reset=reset_all,
        take_snapshot=take,
        restore_snapshot=bring_back,
    )
    advertised = node.broker.config.advertise.rpartition(":")[0]
    console = Console(access, names=[*names, *([advertised] if advertised else [])])
    try:
        yield await console.start(host, port)
    finally:
        await console.stop()


def admin_port_beside(
    host: str, port: int, names: Sequence[str] = ()
) -> Callable[[Node], AbstractAsyncContextManager[dict[str, str]]]:
    """What runs beside a node of `pocketmq serve --admin-port`: its request log, its faults, and the port."""

    @asynccontextmanager
    async def beside(node: Node) -> AsyncIterator[dict[str, str]]:
        watched = WatchedNodes(lambda function: function())
        watched.attach(node)
        mark = await take_mark(node)
        try:
            async with admin_port(node, watched, host=host, port=port, mark=lambda: mark, names=names) as url:
                yield {"POCKETMQ_ADMIN": url}
        finally:
            watched.detach(node)

    return beside
