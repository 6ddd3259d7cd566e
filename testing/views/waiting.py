"""Waiting, from any thread, until nothing is missing any more."""

import asyncio
from collections.abc import Callable
from typing import Final

from ..errors import MessagesMissingError, WouldBlockError
from ..server.embedded import EmbeddedServer

WAIT_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.002


def wait_until_nothing_is_missing(
    server: EmbeddedServer, name: str, missing: Callable[[], str | None], timeout_seconds: float
) -> None:
    """Wait until `missing`, called in the server's thread, returns None; its text is the error after the time limit."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise WouldBlockError(
            f"{name} would block the running event loop: await asyncio.to_thread(rocketmq.{name}, ...)"
        )
    server.run(_nothing_missing(missing, timeout_seconds))


async def _nothing_missing(missing: Callable[[], str | None], timeout_seconds: float) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_seconds
    while (text := missing()) is not None:
        if loop.time() >= deadline:
            raise MessagesMissingError(f"{text} within {timeout_seconds:g} s")
        await asyncio.sleep(_LOOK_SECONDS)
