"""The process that started this one: `pocketmq serve --ephemeral` ends with it.

A test program that is killed, panics or runs into its time limit ends no server of its own. What was started with
`nohup` or `setsid` goes on, and so does a server with a store to keep.
"""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pocketmq.broker.node import Node
    from pocketmq.broker.process import Companion

_log = logging.getLogger("pocketmq.serve")

LOOK_SECONDS: Final = 0.5
"""How often the parent is looked for where the system does not tell of its end."""


def ending_with_parent() -> "list[Companion]":
    """Ends the server as SIGTERM does when the parent has ended. Empty if there is none: it is outside of the
    container, or this process was detached from it."""
    parent = os.getppid()
    if parent <= 1 or not hasattr(signal, "SIGHUP"):
        return []
    is_detached = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN or os.getsid(0) == os.getpid()
    return [] if is_detached else [_ending_with(parent)]


def _ending_with(parent: int) -> "Companion":
    @asynccontextmanager
    async def beside(node: "Node") -> AsyncIterator[Mapping[str, str]]:
        def end() -> None:
            _log.warning("process %d, which started this server, has ended", parent)
            os.kill(os.getpid(), signal.SIGTERM)

        stop = _watch(parent, end)
        try:
            yield {}
        finally:
            stop()

    return beside


def _watch(parent: int, end: Callable[[], None]) -> Callable[[], None]:
    """Calls `end` once the parent has ended; returns what stops watching."""
    loop = asyncio.get_running_loop()
    try:
        descriptor = os.pidfd_open(parent)
    except (OSError, AttributeError):
        return _look_often(loop, parent, end)

    def stop() -> None:
        nonlocal descriptor
        if descriptor >= 0:
            loop.remove_reader(descriptor)
            os.close(descriptor)
            descriptor = -1

    def ended() -> None:
        stop()
        end()

    loop.add_reader(descriptor, ended)
    if os.getppid() != parent:  # it ended before, and another process may have its number
        loop.call_soon(ended)
    return stop


def _look_often(loop: asyncio.AbstractEventLoop, parent: int, end: Callable[[], None]) -> Callable[[], None]:
    timer: asyncio.Handle

    def look() -> None:
        nonlocal timer
        if os.getppid() == parent:
            timer = loop.call_later(LOOK_SECONDS, look)
        else:
            end()

    timer = loop.call_soon(look)
    return lambda: timer.cancel()
