"""Lifetime: `with` and `async with` for what has a blocking `start` and `stop`: one server, or a cluster."""

import asyncio
from types import TracebackType
from typing import Self


class Lifetime:
    """Started at the beginning of a block and stopped at its end."""

    def start(self) -> Self:
        """Return once it runs. If that fails, nothing is left behind."""
        raise NotImplementedError

    def stop(self) -> None:
        """Wait until it has ended. Does nothing if it does not run."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        """The caller's loop keeps running. If the start is cancelled, what was started is stopped again."""
        starting = asyncio.create_task(asyncio.to_thread(self.start))
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait((starting,))
            await asyncio.to_thread(self.stop)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stopping = asyncio.create_task(asyncio.to_thread(self.stop))
        try:
            await asyncio.shield(stopping)
        except asyncio.CancelledError:
            await asyncio.wait((stopping,))
            raise
