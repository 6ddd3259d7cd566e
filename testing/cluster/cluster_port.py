"""The HTTP port of a cluster: faults, requests, clock and ledger of all members, and what each broker has.

    http://127.0.0.1:8080/api/topics                 of the first master that runs
    http://127.0.0.1:8080/brokers/b1/api/topics      of b1; the page is at /brokers/b1/

Imported when a port is asked for: it loads `pocketmq.console`.
"""

from collections.abc import Callable, Mapping
from functools import partial

from pocketmq.broker.node import Node
from pocketmq.console.server import Console
from pocketmq.console.server_access import NotRunning

from ..server.stand_in_views import StandIn
from .cluster_broker import ClusterBroker
from .cluster_context import ClusterContext


def console_of(context: ClusterContext, brokers: Mapping[str, ClusterBroker]) -> Console:
    """The port of a cluster, not started."""

    def access(node: Callable[[], Node]) -> StandIn:
        return StandIn(node, context.watched, time=lambda: context.time)

    def first() -> Node:
        """The first master that runs."""
        for broker in brokers.values():
            if broker.is_running and not broker.broker_id:
                return broker.node
        raise NotRunning("no broker of the cluster is running")

    def each() -> dict[str, StandIn]:
        return {name: access(partial(_running, broker)) for name, broker in brokers.items()}

    return Console(access(first), each)


def _running(broker: ClusterBroker) -> Node:
    if not broker.is_running:
        raise NotRunning(f"broker {broker.name} is not running")
    return broker.node
