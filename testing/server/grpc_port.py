"""The gRPC port of a server; imported when a port is asked for, because it loads `pocketmq.grpc_endpoint`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pocketmq.broker.node import Node
from pocketmq.grpc_endpoint.endpoint import endpoint_of, open_endpoint

__all__ = ("endpoint_of", "grpc_port")


@asynccontextmanager
async def grpc_port(node: Node) -> AsyncIterator[str]:
    """The port of a running node, a free one unless grpcServerPort names it; its `host:port`."""
    async with open_endpoint(node) as endpoint:
        yield endpoint.address
