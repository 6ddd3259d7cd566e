"""The ports of an embedded server beside the remoting ones: HTTP, and gRPC. What a server without them needs is not
loaded."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

from pocketmq.broker.node import Node

from ..faults.watched_node import WatchedNodes
from ..state.mark import Mark


class Ports:
    """Opened and closed in the server's thread."""

    def __init__(self) -> None:
        self.admin_url = ""
        """`http://127.0.0.1:port`; empty without one."""
        self.grpc_endpoint = ""
        """`127.0.0.1:port`; empty without one."""
        self._open = AsyncExitStack()
        self._opening = asyncio.Lock()

    async def open_admin(
        self, node: Node, watched: WatchedNodes, port: int, mark: Callable[[], Mark], names: Sequence[str]
    ) -> None:
        from .admin_port import admin_port

        host = node.broker.config.bind_address
        self.admin_url = await self._open.enter_async_context(
            admin_port(node, watched, host=host, port=port, mark=mark, names=names)
        )

    async def open_grpc(self, node: Node) -> None:
        """Does nothing if it is open."""
        from .grpc_port import grpc_port

        async with self._opening:  # two threads may ask at once
            if not self.grpc_endpoint:
                self.grpc_endpoint = await self._open.enter_async_context(grpc_port(node))

    async def close(self) -> None:
        self.admin_url = self.grpc_endpoint = ""
        await self._open.aclose()
