"""A server of asyncio's streams for a test. Its connections end with it: asyncio's own leaves them open."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import FrameCutter

ACCEPT_TURNS = 10
"""Iterations of the loop, more than it needs from an accepted socket to the task that handles it."""
Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def stream_server(handle: Handle, **options: Any) -> AsyncIterator[int]:
    """The port of 127.0.0.1 on which each connection is handled by a task of its own."""
    tasks: dict[asyncio.Task[Any], asyncio.StreamWriter] = {}

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks[task] = writer
        try:
            await handle(reader, writer)
        finally:
            writer.close()
            del tasks[task]

    server = await asyncio.start_server(accepted, "127.0.0.1", 0, **options)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for _ in range(ACCEPT_TURNS):
            await asyncio.sleep(0)
        left = list(tasks)
        for task in left:
            tasks[task].transport.abort()  # what it has not sent is not waited for
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.sleep(0)  # the transports are closed in the next iteration of the loop


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Everything that one reads, to the other."""
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass


async def linked(
    address: str,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    back: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]] = copy,
) -> None:
    """For a proxy in front of `address`: a connection to it, until one side ends. `back` copies what it answers."""
    host, _, port = address.rpartition(":")
    from_server, to_server = await asyncio.open_connection(host, int(port))
    ways = [asyncio.create_task(copy(reader, to_server)), asyncio.create_task(back(from_server, writer))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        to_server.close()


@asynccontextmanager
async def frame_server(answer: Callable[[Command, asyncio.StreamWriter], None]) -> AsyncIterator[str]:
    """The address of a server that does this with each request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        cutter = FrameCutter()
        while data := await reader.read(65536):
            for asked in cutter.feed(data):
                answer(asked, writer)

    async with stream_server(serve) as port:
        yield f"127.0.0.1:{port}"
