"""The gRPC port of one broker of a cluster: the same one after every start of the broker.

A route names every broker at its own gRPC port. `pocketmq.grpc_endpoint` is loaded with the first port.
"""

import asyncio
from typing import TYPE_CHECKING

from pocketmq.broker.config.addresses import host_and_port
from pocketmq.broker.node import Node

from .held_port import HeldPort

if TYPE_CHECKING:
    from pocketmq.grpc_endpoint.endpoint import Endpoint


class ClusterGrpcPort:
    """`open` and `close` mirror each other, on the cluster's loop."""

    def __init__(self, addresses: dict[str, str]) -> None:
        """`addresses` are the ports of all brokers by the brokers' addresses; this one is added."""
        self.address = ""
        """`127.0.0.1:port`, also while the broker is stopped; empty before the first start with a port."""
        self._addresses = addresses
        self._endpoint: Endpoint | None = None
        self._held: HeldPort | None = None
        self._opening = asyncio.Lock()

    async def open(self, node: Node) -> None:
        """Serve gRPC clients on a running node; nothing if it does. `StartError` if it cannot."""
        async with self._opening:  # two threads may ask at once
            if self._endpoint is None:
                await self._open(node)

    async def _open(self, node: Node) -> None:
        from ..server.grpc_port import endpoint_of

        port = host_and_port(self.address)[1] if self.address else 0
        endpoint = endpoint_of(node, port=port, neighbours=self._addresses)
        await endpoint.start()
        self._endpoint, self.address = endpoint, endpoint.address
        self._addresses[node.broker_address] = self.address
        self.end()
        self._held = HeldPort(*host_and_port(self.address))

    async def close(self, *, is_killed: bool = False) -> None:
        """Before its broker ends. A killed one resets its connections and tells nobody."""
        endpoint, self._endpoint = self._endpoint, None
        if endpoint is None:
            return
        if is_killed:
            endpoint.reset()
        await endpoint.stop()
        if self._held is not None:
            self._held.hold()

    def end(self) -> None:
        """Give the port back."""
        held, self._held = self._held, None
        if held is not None:
            held.release()
