"""A proxy between clients and a server whose replies a test can spoil, hold back or cut off.

client -- bytes as they are --> Between -- bytes --> server
client <-- what `change` makes of each frame -- Between <-- frames -- server
"""

import asyncio
from collections.abc import Callable

from pocketmq.broker.node import Node
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame

Change = Callable[[Command], bytes | None]
"""A reply of the server, as bytes for the client; None ends the connection instead."""


class Between:
    """Use as `async with`. `change` may be set at any time; `down` and `up` close and open the port."""

    def __init__(self, target: str, change: Change = encode_frame) -> None:
        self.target = target
        self.change = change
        self.connections = 0
        """Made so far."""
        self._port = 0
        self._server: asyncio.Server | None = None
        self._links: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    async def up(self) -> None:
        """Accept connections, always on the same port."""
        self._server = await asyncio.start_server(self._link, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def down(self) -> None:
        """Accept no more connections, and cut the open ones."""
        assert self._server is not None
        self._server.close()
        await self.cut()

    async def cut(self) -> None:
        """Cut every connection; clients may open new ones."""
        links = list(self._links)
        for link in links:
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = asyncio.current_task()
        assert link is not None
        self._links.add(link)
        self.connections += 1
        host, _, port = self.target.rpartition(":")
        try:
            from_server, to_server = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.close()
            self._links.discard(link)
            return
        forward = asyncio.create_task(self._forward(reader, to_server))
        try:
            await self._back(from_server, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            forward.cancel()
            writer.close()
            to_server.close()
            self._links.discard(link)

    async def _forward(self, reader: asyncio.StreamReader, to_server: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                to_server.write(data)
                await to_server.drain()
        except OSError:
            pass
        to_server.close()

    async def _back(self, from_server: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        cutter = FrameCutter()
        while data := await from_server.read(65536):
            for command in cutter.feed(data):
                changed = self.change(command)
                if changed is None:
                    return
                writer.write(changed)
            await writer.drain()

    async def __aenter__(self) -> "Between":
        await self.up()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.down()


def leading_to(broker: Between, node: Node) -> Change:
    """For a name server's replies: routes lead to the proxy instead of to the broker."""
    own, proxy = node.broker_address.encode(), broker.address.encode()

    def change(reply: Command) -> bytes:
        if reply.body is not None:
            reply.body = bytes(reply.body).replace(own, proxy)
        return encode_frame(reply)

    return change
