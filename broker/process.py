"""Runs the server process: event loop, start, signals, stop.

`NAMESRV_ADDR=host:port` is written to standard output once clients can connect: scripts wait for that line.
"""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

from .config.broker_config import BrokerConfig
from .config.name_server_config import NameServerConfig
from .node import Node

WANTED_FILES: Final = 65536
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def run(
    config: BrokerConfig, name_server_config: NameServerConfig | None, journal_folder: Path | None = None
) -> None:
    """Serve until SIGTERM or SIGINT. Raises `StartError` or `StoreError` if the start fails; nothing stays open."""
    raise_file_limit()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        node = Node(config, name_server_config, host=config.bind_address, journal_folder=journal_folder)
        runner.run(_serve(node, config))


def raise_file_limit() -> None:
    """Raise the limit of file descriptors, which mapped files and connections use, as far as the system allows."""
    try:
        import resource
    except ImportError:  # Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_FILES if hard == resource.RLIM_INFINITY else min(WANTED_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Creates uvloop's event loops; `None` means asyncio's own, if uvloop is not installed."""
    try:
        import uvloop
    except ImportError:  # not available for this platform
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _serve(node: Node, config: BrokerConfig) -> None:
    stop_requested = asyncio.Event()
    _on_signals(stop_requested.set)
    starting = asyncio.create_task(node.start())
    stopping = asyncio.create_task(stop_requested.wait())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():  # a signal during the start: the start is undone
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await starting
        return
    starting.result()
    print(f"NAMESRV_ADDR={node.namesrv_address or config.namesrv_addr}", flush=True)
    await stopping
    await node.stop()


def _on_signals(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        try:
            loop.add_signal_handler(number, stop)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))
