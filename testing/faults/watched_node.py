"""Puts the request log and the faults on nodes: one pair of watchers for each of their servers.

All nodes of one `WatchedNodes` run on one loop and share a log and the rules.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random

import msgspec
from pocketmq.broker.network.dispatch import NAME_SERVER
from pocketmq.broker.network.server import Server
from pocketmq.broker.network.watch import Watchable, Watcher
from pocketmq.broker.node import Node
from pocketmq.broker.time.timers import Timers
from pocketmq.protocol.bodies.routes import BrokerData

from ..ledger.ledger import Ledger
from ..requests.request_log import LogWatcher, RequestLog
from ..requests.requests import Requests
from .fault_watcher import ActiveRules, FaultWatcher
from .faults import Faults
from .shaping import later


class _WatchedServer(msgspec.Struct, eq=False):
    """The watchers of one server, behind its log: the ledger's first, the faults while they are needed, the ledger's
    second."""

    server: Watchable
    log: LogWatcher
    faults: FaultWatcher
    node: Node | None = None
    """Whose server it is, once that runs."""
    ledger: tuple[Watcher, ...] = ()
    _placed: tuple[Watcher, ...] = ()

    def place(self, *, has_rules: bool) -> None:
        """The faults watch while there is a rule, or something that a removed rule has begun."""
        faults = (self.faults,) if has_rules or not self.faults.is_idle else ()
        wanted = (*self.ledger[:1], *faults, *self.ledger[1:])
        if wanted != self._placed:
            self.remove()
            for one in wanted:
                self.server.add_watcher(one)
            self._placed = wanted

    def remove(self) -> None:
        """All but the log."""
        for one in self._placed:
            self.server.remove_watcher(one)
        self._placed = ()


class WatchedNodes:
    """The request log and the rules of the nodes that are attached. They outlive a restart of a node.

    Nothing watches before `begin`. `call` calls a function on the loop of the nodes and waits for it; used where the
    caller is not on it.
    """

    def __init__(self, call: Callable[[Callable[[], None]], None], *, random: Random | None = None) -> None:
        """`random` for the rules; without it that of the node that was attached last."""
        self._call = call
        self._random = random
        self.timers: Timers | None = None
        """Those of the rules; None: of the node that was attached last."""
        self.log = RequestLog()
        self.requests = Requests(self.log, self._on_loop)
        self._rules = ActiveRules(random or Random())
        self._rules.brokers = self._brokers
        self._rules.changed.append(self._rules_changed)
        self.faults = Faults(self._rules, self.log, self._on_loop)
        self.ledger: Ledger | None = None
        """What became of every message; `keep_ledger` begins it."""
        self._has_begun = False
        self._servers: list[_WatchedServer] = []
        self._nodes: dict[Node, Callable[[], None]] = {}
        """With what is called when servers of other protocols (gRPC) are opened or closed beside them."""
        self._known: dict[str, BrokerData] = {}
        """Every broker that was attached, by name, with the addresses of its members."""

    def begin(self) -> None:
        """Log every request from now on. From any thread."""
        if not self._has_begun:
            self._on_loop(self._begin)

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            for one in self._servers:
                one.server.add_watcher(one.log)
            self._rules_changed()

    def attach(self, node: Node) -> None:
        """Watch a node that runs, and its servers but for those that are watched already. Call it on the loop."""
        config = node.broker.config
        timers = self.timers or node.broker.state.timers
        self._rules.call_later = (
            timers.call_later if timers.is_virtual else partial(later, asyncio.get_running_loop())
        )
        self._rules.random = self._random or node.broker.state.random
        self.log.own_brokers.add(node.broker_address)
        known = self._known.get(config.broker_name) or BrokerData(
            config.broker_cluster_name, config.broker_name
        )
        addresses = {**(known.broker_addrs or {}), config.broker_id: node.broker_address}
        self._known[config.broker_name] = msgspec.structs.replace(known, broker_addrs=addresses)
        if self.ledger is not None:
            self.ledger.attach(node)
        self._nodes[node] = changed = partial(self._servers_changed, node)
        node.when_side_servers_changed.append(changed)
        changed()

    def _servers_changed(self, node: Node) -> None:
        servers: list[Watchable] = [*node.servers, *node.side_servers]
        for one in [one for one in self._servers if one.node is node and one.server not in servers]:
            self.unwatch(one.server)
        for server in servers:
            if not any(one.server is server for one in self._servers):
                is_port = not isinstance(server, Server) or server.handlers.name != NAME_SERVER.name
                of = {"broker": node.broker.config.broker_name} if is_port else {"name_server": "n0"}
                self.watch(server, **of)
        for one in self._servers:
            if one.server in servers:
                one.node = node

    def watch(self, server: Watchable, *, broker: str | None = None, name_server: str | None = None) -> None:
        """Watch one server: a port of the broker of that name, or a name server. Call it on the loop."""
        self._rules.loop = asyncio.get_running_loop()
        if name_server is not None and name_server not in self._rules.name_servers:
            self._rules.name_servers.append(name_server)  # rules may name it, also while it is stopped
        log = LogWatcher(self.log, broker)
        watched = _WatchedServer(server, log, FaultWatcher(self._rules, log, name_server))
        self._servers.append(watched)
        if self._has_begun:
            server.add_watcher(log)
        self._watch_for_ledger(watched)
        self._rules_changed()

    def keep_ledger(self) -> Ledger:
        """Begin the ledger, if it has not begun. Call it on the loop."""
        self._begin()
        if self.ledger is None:
            self.ledger = Ledger(self.log, self._on_loop)
            for node in self._nodes:
                self.ledger.attach(node)
            for one in self._servers:
                self._watch_for_ledger(one)
            self._rules_changed()
        return self.ledger

    def _watch_for_ledger(self, watched: _WatchedServer) -> None:
        if self.ledger is not None and watched.faults.name_server is None:
            watched.ledger = self.ledger.watchers(watched.log)

    def forget_facts(self) -> None:
        """The messages are gone, others will lie where they lay: the ledger begins anew. Call it on the loop."""
        if self.ledger is not None:
            self.ledger.clear()

    def end_ledger(self) -> None:
        """Forget the ledger. Call it on the loop."""
        self.ledger = None
        for one in self._servers:
            one.ledger = ()
        self._rules_changed()

    def detach(self, node: Node) -> None:
        """Forget a node that stops or has stopped. Call it on the loop."""
        changed = self._nodes.pop(node, None)
        if changed is not None:
            node.when_side_servers_changed.remove(changed)
        for one in [one for one in self._servers if one.node is node]:
            self.unwatch(one.server)
        if self.ledger is not None:
            self.ledger.detach(node)

    def unwatch(self, server: Watchable) -> None:
        """Forget a server. Call it on the loop."""
        for watched in [one for one in self._servers if one.server is server]:
            self._servers.remove(watched)
            watched.remove()
            server.remove_watcher(watched.log)

    def _rules_changed(self) -> None:
        for one in self._servers if self._has_begun else ():
            one.faults.rules_changed()
            one.place(has_rules=bool(self._rules.all))

    def _on_loop(self, function: Callable[[], None]) -> None:
        """Rules are changed where they are read; directly, if no server runs."""
        if not self._servers or self._is_on_loop():
            function()
        else:
            self._call(function)

    def _is_on_loop(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._rules.loop
        except RuntimeError:  # no loop runs in this thread
            return False

    def _brokers(self) -> dict[str, BrokerData]:
        """Those that were attached, and those that registered from outside."""
        found = dict(self._known)
        for node in self._nodes:
            if node.name_server is not None:
                for name, data in node.name_server.routes.brokers.items():
                    found.setdefault(name, data)
        return found
