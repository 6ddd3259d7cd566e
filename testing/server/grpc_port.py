"""The gRPC port of a server. The only file that imports `pocketmq.grpc_endpoint`; imported when a port is asked for."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pocketmq.broker.node import Node
from pocketmq.grpc_endpoint.endpoint import open_endpoint


@asynccontextmanager
async def grpc_port(node: Node) -> AsyncIterator[str]:
    """The port of a running node, a free one unless grpcServerPort names it; its `host:port`."""
    async with open_endpoint(node) as endpoint:
        yield endpoint.address
