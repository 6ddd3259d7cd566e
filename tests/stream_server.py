"""A server of asyncio's streams for a test. Its connections end with it: asyncio's own leaves them open."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

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
