"""The ports of an embedded server beside the remoting ones: HTTP, and gRPC. What a server without them needs is not
loaded."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from pocketmq.broker.node import Node

from ..faults.watched_node import WatchedNodes
from ..state.mark import Mark


class Ports:
    """Open inside `async with`, in the server's thread."""

    def __init__(self) -> None:
        self.admin_url = ""
        """`http://127.0.0.1:port`; empty without one."""
        self.grpc_endpoint = ""
        """`127.0.0.1:port`; empty without one."""
        self._open = AsyncExitStack()
        self._opening = asyncio.Lock()

    async def open_admin(
        self, node: Node, watched: WatchedNodes, port: int, mark: Callable[[], Mark]
    ) -> None:
        from .admin_port import admin_port

        host = node.broker.config.bind_address
        self.admin_url = await self._open.enter_async_context(
            admin_port(node, watched, host=host, port=port, mark=mark)
        )

    async def open_grpc(self, node: Node) -> None:
        """Does nothing if it is open."""
        from .grpc_port import grpc_port

        async with self._opening:  # two threads may ask at once
            if not self.grpc_endpoint:
                self.grpc_endpoint = await self._open.enter_async_context(grpc_port(node))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.admin_url = self.grpc_endpoint = ""
        await self._open.aclose()
