"""The HTTP port of a cluster: faults, requests, clock and ledger of all members, and what each broker has.

    http://127.0.0.1:8080/api/topics                 of the first master that runs
    http://127.0.0.1:8080/brokers/b1/api/topics      of b1; the page is at /brokers/b1/

Imported when a port is asked for: it loads `pocketmq.console`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from pocketmq.broker.node import Node
from pocketmq.console.server import Console
from pocketmq.console.server_access import NotRunning, ServerAccess

from ..server.admin_port import server_access
from .cluster_broker import ClusterBroker
from .cluster_context import ClusterContext


class ClusterPort:
    """`start` and `stop` mirror each other, on the cluster's loop."""

    def __init__(self, context: ClusterContext, brokers: Mapping[str, ClusterBroker]) -> None:
        self._context: Final = context
        self._brokers = brokers
        self._console = Console(self._access(self._first), self._others)

    async def start(self, host: str, port: int) -> str:
        """Listen; returns the address. `StartError` if the port is taken."""
        return await self._console.start(host, port)

    async def stop(self) -> None:
        await self._console.stop()

    @property
    def url(self) -> str:
        return self._console.url

    def _access(self, node: Callable[[], Node]) -> ServerAccess:
        return server_access(node, self._context.watched, time=lambda: self._context.time)

    def _others(self) -> dict[str, ServerAccess]:
        """What the port shows of each broker, by name."""
        return {name: self._access(partial(_running, broker)) for name, broker in self._brokers.items()}

    def _first(self) -> Node:
        """The first master that runs."""
        for broker in self._brokers.values():
            if broker.is_running and not broker.broker_id:
                return broker.node
        raise NotRunning("no broker of the cluster is running")


def _running(broker: ClusterBroker) -> Node:
    if not broker.is_running:
        raise NotRunning(f"broker {broker.name} is not running")
    return broker.node
