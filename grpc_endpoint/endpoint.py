"""The gRPC port of one broker: builds its parts, binds the port, and stops both.

    Clients < Producing, Consuming        each made from the broker and the parts before it

The parts stand in front of the broker's own and share its loop, its timers and its tables.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from pocketmq.broker.config.addresses import socket_address
from pocketmq.broker.errors import StartError
from pocketmq.broker.network.watch import Watcher
from pocketmq.broker.node import Node, reachable

from .calls.handler import Handler
from .calls.rpc_call import SEND_BYTES, Calls
from .clients.clients import Clients
from .clients.telemetry import TelemetryStream, heartbeat, notify_client_termination
from .consuming.ack_handlers import (
    ack_message,
    change_invisible_duration,
    forward_message_to_dead_letter_queue,
)
from .consuming.consuming import Consuming
from .consuming.receive_handlers import receive_message
from .http2.certificates import GrpcTls
from .http2.limits import Limits
from .http2.port import Http2Port
from .messages.service import BY_NAME, REQUEST_BYTES
from .producing.producing import Producing
from .producing.route_handlers import query_assignment, query_route
from .producing.routes import Routes
from .producing.send_handlers import send_message
from .producing.transaction_handlers import end_transaction, recall_message

MOST_CALLS: Final = 10_000
"""Calls of one connection at once, also where grpcMaxConcurrentCallsPerConnection allows more."""
LEAST_PORT_BYTES: Final = 545_259_520
"""What all connections may keep together, see `Limits.port_bytes`; more where grpcMaxInboundMessageSize is large."""


def handlers_of(clients: Clients, producing: Producing, consuming: Consuming) -> dict[str, Handler]:
    """The handler of each rpc, by the rpc's path."""
    found: dict[str, Callable[..., Any]] = {
        "Telemetry": partial(TelemetryStream, clients),
        "Heartbeat": partial(heartbeat, clients),
        "NotifyClientTermination": partial(notify_client_termination, clients),
        "QueryRoute": partial(query_route, producing),
        "SendMessage": partial(send_message, producing),
        "EndTransaction": partial(end_transaction, producing),
        "RecallMessage": partial(recall_message, producing),
        "QueryAssignment": partial(query_assignment, producing),
        "ReceiveMessage": partial(receive_message, consuming),
        "AckMessage": partial(ack_message, consuming),
        "ChangeInvisibleDuration": partial(change_invisible_duration, consuming),
        "ForwardMessageToDeadLetterQueue": partial(forward_message_to_dead_letter_queue, consuming),
    }
    assert found.keys() == BY_NAME.keys()
    return {BY_NAME[name].path: Handler(BY_NAME[name], function) for name, function in found.items()}


class Endpoint:
    """`start` and `stop` mirror each other; stop it before the broker."""

    def __init__(
        self, node: Node, *, port: int | None = None, neighbours: Mapping[str, str] | None = None
    ) -> None:
        """On `port` (0: a free one), without it on the one that grpcServerPort names, or a free one. `neighbours` are
        the gRPC ports of other brokers by the brokers' addresses, where they are known.

        Raises `StartError` where the broker cannot serve gRPC clients.
        """
        broker = node.broker
        if not broker.config.is_5:
            raise StartError("a gRPC port needs emulate=5: the 4.9 line has no gRPC clients")
        config = broker.config.endpoint
        self._port_number = (config.grpc_server_port or 0) if port is None else port
        self._node = node
        self._broker = broker
        self.address = ""
        """`host:port` at which a client on this machine reaches it."""
        self._tls = GrpcTls(broker.config)
        self._tls.check()
        self.clients = Clients(broker)
        self.routes = Routes(broker, node.name_server, neighbours)
        self.producing = Producing(broker, self.clients, self.routes)
        self.consuming = Consuming(broker, self.clients)
        handlers = handlers_of(self.clients, self.producing, self.consuming)
        send_bytes = max(SEND_BYTES, broker.config.store.max_message_size + REQUEST_BYTES)
        self.calls = Calls(
            handlers,
            broker.state.timers,
            _journal_watchers(node),
            send_bytes=send_bytes,
            inspection=_inspection_handlers,
        )
        self.calls.when_pass_ends.append(self.consuming.acks.store)
        limits = Limits(
            message_bytes=config.grpc_max_inbound_message_size,
            calls=min(config.grpc_max_concurrent_calls_per_connection, MOST_CALLS),
            idle_seconds=config.grpc_client_idle_time_mills / 1000,
            shutdown_seconds=config.grpc_shutdown_time_seconds,
            port_bytes=max(4 * config.grpc_max_inbound_message_size, LEAST_PORT_BYTES),
        )
        self.port = Http2Port(self.calls, limits, self._tls if self._tls.is_served else None)

    async def start(self) -> None:
        """Bind the port and accept calls. Raises `StartError` if it is in use."""
        host = self._broker.config.bind_address
        try:
            port = await self.port.bind(host, self._port_number)
        except BaseException:
            await self.port.stop()
            raise
        self.routes.port = port
        self.address = socket_address(reachable(host), port)
        self.clients.start()
        self.consuming.start()
        await self.port.serve()
        self._node.add_side_server(self.calls.watching)

    def reset(self) -> None:
        """End as a killed process does, for tests: reset the connections, tell nobody; then call `stop`."""
        self.port.reset()

    async def stop(self) -> None:
        """End the open calls, close the connections."""
        self.port.go_away()
        await self.port.stop()
        self._node.remove_side_server(self.calls.watching)
        self.routes.stop()
        self.consuming.stop()
        self.clients.stop()


def _inspection_handlers() -> dict[str, Handler]:
    from .calls.inspection import inspection_handlers

    return inspection_handlers()


def _journal_watchers(node: Node) -> list[Watcher]:
    """The journal's, if there is one: it is nearest to the clients, and records what they see."""
    if node.journal is None:
        return []
    from .calls.journaling import SERVER_NAME, RpcJournalWatcher

    return [RpcJournalWatcher(node.journal, SERVER_NAME)]


@asynccontextmanager
async def open_endpoint(node: Node) -> AsyncIterator[Endpoint]:
    """The gRPC port of a running node, a free one unless grpcServerPort names it. `StartError` if it is in use or the
    broker cannot serve it."""
    endpoint = Endpoint(node)
    await endpoint.start()
    try:
        yield endpoint
    finally:
        await endpoint.stop()


@asynccontextmanager
async def endpoint_beside(node: Node) -> AsyncIterator[Mapping[str, str]]:
    """What runs beside a node of `pocketmq serve --grpc-port`."""
    async with open_endpoint(node) as endpoint:
        yield {"GRPC_ENDPOINT": endpoint.address}
