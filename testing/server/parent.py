"""The process that started this one: `pocketmq serve --ephemeral` ends with it.

A test program that is killed, panics or runs into its time limit ends no server of its own. What was started with
`nohup` or `setsid` goes on, and so does a server with a store to keep.
"""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pocketmq.broker.node import Node
    from pocketmq.broker.process import Companion

_log = logging.getLogger("pocketmq.serve")

LOOK_SECONDS: Final = 0.2
"""How often the parent is looked for."""


def ending_with_parent() -> "list[Companion]":
    """Ends the server as SIGTERM does when the parent has ended. Empty if there is none: it is outside of the
    container, or this process was detached from it."""
    parent = os.getppid()
    if parent <= 1 or not hasattr(signal, "SIGHUP"):
        return []
    is_detached = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN or os.getsid(0) == os.getpid()
    return [] if is_detached else [_ending_with(parent)]


def _ending_with(parent: int) -> "Companion":
    async def end_after_parent() -> None:
        while os.getppid() == parent:  # noqa: ASYNC110 - not every system says when it ends
            await asyncio.sleep(LOOK_SECONDS)
        _log.warning("process %d, which started this server, has ended", parent)
        os.kill(os.getpid(), signal.SIGTERM)

    @asynccontextmanager
    async def beside(node: "Node") -> AsyncIterator[Mapping[str, str]]:
        looking = asyncio.create_task(end_after_parent(), name="the parent")
        try:
            yield {}
        finally:
            looking.cancel()

    return beside
