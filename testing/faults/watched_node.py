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


class WatchedNodes:
    """The request log and the rules of the nodes that are attached. They outlive a restart of a node.

    `call` calls a function on the loop of the nodes and waits for it; used where the caller is not on it.
    """

    def __init__(
        self,
        call: Callable[[Callable[[], None]], None],
        *,
        timers: Timers | None = None,
        random: Random | None = None,
    ) -> None:
        """`timers` and `random` for the rules; without them those of the node that was attached last."""
        self._call = call
        self._timers = timers
        self._random = random
        self.log = RequestLog()
        self.requests = Requests(self.log, self._on_loop)
        self._rules = ActiveRules(random or Random())
        self._rules.brokers = self._brokers
        self._rules.changed.append(self._rules_changed)
        self.faults = Faults(self._rules, self.log, self._on_loop)
        self.ledger: Ledger | None = None
        """What became of every message; `keep_ledger` begins it."""
        self._watchers: list[tuple[Watchable, LogWatcher, FaultWatcher]] = []
        self._accountants: dict[Watchable, tuple[Watcher, Watcher]] = {}
        """The ledger's two watchers of each server."""
        self._nodes: dict[Node, tuple[Server, ...]] = {}
        self._beside: dict[Node, Callable[[], None]] = {}
        self._servers_beside: dict[Node, list[Watchable]] = {}
        """Servers of other protocols (gRPC), by their node."""
        self._known: dict[str, BrokerData] = {}
        """Every broker that was attached, by name, with the addresses of its members."""

    def attach(self, node: Node, *, name_server: str = "n0") -> None:
        """Watch a node that runs, and its servers but for those that are watched already. Call it on the loop."""
        config = node.broker.config
        timers = self._timers or node.broker.state.timers
        self._rules.call_later = (
            timers.call_later if timers.is_virtual else partial(later, asyncio.get_running_loop())
        )
        self._rules.random = self._random or node.broker.state.random
        self._nodes[node] = node.servers
        if self.ledger is not None:
            self.ledger.attach(node)
        self.add_known_broker(
            config.broker_name, config.broker_cluster_name, config.broker_id, node.broker_address
        )
        watched = [one[0] for one in self._watchers]
        for server in node.servers:
            if server in watched:
                continue
            if server.handlers.name == NAME_SERVER.name:
                self.watch(server, name_server=name_server)
            else:
                self.watch(server, broker=config.broker_name)
        self._beside[node] = watch = partial(self._beside_changed, node, config.broker_name)
        node.when_side_servers_changed.append(watch)
        watch()

    def _beside_changed(self, node: Node, broker: str) -> None:
        """Servers of other protocols of a node were opened or closed."""
        known = self._servers_beside.setdefault(node, [])
        for server in [one for one in known if one not in node.side_servers]:
            known.remove(server)
            self.unwatch(server)
        for server in [one for one in node.side_servers if one not in known]:
            known.append(server)
            self.watch(server, broker=broker)

    def watch(self, server: Watchable, *, broker: str | None = None, name_server: str | None = None) -> None:
        """Watch one server: a port of the broker of that name, or a name server. Call it on the loop."""
        self._rules.loop = asyncio.get_running_loop()
        if name_server is not None:
            self.know_name_server(name_server)
        log = LogWatcher(self.log, broker)
        faults = FaultWatcher(self._rules, log, name_server)
        server.add_watcher(log)
        self._watchers.append((server, log, faults))
        if self.ledger is not None and broker is not None:
            self._accountants[server] = self.ledger.watchers(log)
            self._place(server, faults)
        self._rules_changed()

    def keep_ledger(self) -> Ledger:
        """Begin the ledger, if it has not begun. Call it on the loop."""
        if self.ledger is None:
            self.ledger = Ledger(self.log, self._on_loop)
            for node in self._nodes:
                self.ledger.attach(node)
            for server, log, faults in self._watchers:
                if faults.name_server is None:
                    self._accountants[server] = self.ledger.watchers(log)
                    self._place(server, faults)
        return self.ledger

    def forget_facts(self) -> None:
        """The messages are gone, others will lie where they lay: the ledger begins anew. Call it on the loop."""
        if self.ledger is not None:
            self.ledger.clear()

    def end_ledger(self) -> None:
        """Forget the ledger. Call it on the loop."""
        self.ledger = None
        for server, watchers in self._accountants.items():
            for one in watchers:
                server.remove_watcher(one)
        self._accountants.clear()

    def _place(self, server: Watchable, faults: FaultWatcher) -> None:
        """Behind the log: the ledger's first watcher, the faults if they watch, the ledger's second one."""
        arrivals, executions = self._accountants[server]
        wanted = (arrivals, faults, executions) if faults.is_watching else (arrivals, executions)
        for one in (arrivals, faults, executions):
            server.remove_watcher(one)
        for one in wanted:
            server.add_watcher(one)

    def know_name_server(self, name: str) -> None:
        """A name server that rules may name, also while it is stopped."""
        if name not in self._rules.name_servers:
            self._rules.name_servers.append(name)

    def add_known_broker(self, name: str, cluster: str, broker_id: int, address: str) -> None:
        """A broker that routes may name, and whose registrations are neither logged nor hit."""
        self.log.own_brokers.add(address)
        known = self._known.get(name) or BrokerData(cluster, name, {})
        addresses = {**(known.broker_addrs or {}), broker_id: address}
        self._known[name] = msgspec.structs.replace(known, broker_addrs=addresses)

    def detach(self, node: Node) -> None:
        """Forget a node that stops or has stopped. Call it on the loop."""
        watch = self._beside.pop(node, None)
        if watch is not None:
            node.when_side_servers_changed.remove(watch)
        for beside in self._servers_beside.pop(node, ()):
            self.unwatch(beside)
        for server in self._nodes.pop(node, ()):
            self.unwatch(server)
        if self.ledger is not None:
            self.ledger.detach(node)

    def unwatch(self, server: Watchable) -> None:
        """Forget a server. Call it on the loop."""
        for watched in [one for one in self._watchers if one[0] is server]:
            self._watchers.remove(watched)
            server.remove_watcher(watched[1])
            server.remove_watcher(watched[2])
            for one in self._accountants.pop(server, ()):
                server.remove_watcher(one)

    def _rules_changed(self) -> None:
        """The faults watch while there is a rule, or something that a removed rule has begun."""
        for server, _, faults in self._watchers:
            faults.rules_changed()
            is_needed = self._rules.has_rules or not faults.is_idle
            if is_needed and not faults.is_watching:
                server.add_watcher(faults)
            elif faults.is_watching and not is_needed:
                server.remove_watcher(faults)
            has_changed = faults.is_watching != is_needed
            faults.is_watching = is_needed
            if has_changed and server in self._accountants:
                self._place(server, faults)

    def _on_loop(self, function: Callable[[], None]) -> None:
        """Rules are changed where they are read; directly, if no server runs."""
        if not self._watchers or self._is_on_loop():
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
