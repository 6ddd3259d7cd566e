"""Runs the server process: event loop, start, signals, stop.

`NAMESRV_ADDR=host:port` is written to standard output once clients can connect: scripts wait for that line.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from .config.broker_config import BrokerConfig
from .config.name_server_config import NameServerConfig
from .errors import StartError
from .node import Node

WANTED_FILES: Final = 65536
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def run(
    config: BrokerConfig,
    name_server_config: NameServerConfig | None,
    journal_folder: Path | None = None,
    ports_file: Path | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT. Raises `StartError` or `StoreError` if the start fails; nothing stays open.

    `ports_file` gets the addresses as JSON: namesrv, broker, admin, grpc; null for what does not run.
    """
    raise_file_limit()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        node = Node(config, name_server_config, host=config.bind_address, journal_folder=journal_folder)
        runner.run(_serve(node, config, ports_file))


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


async def _serve(node: Node, config: BrokerConfig, ports_file: Path | None) -> None:
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
    namesrv_addr = node.namesrv_address or config.namesrv_addr
    try:
        if ports_file is not None:
            write_ports(ports_file, node)
        print(f"NAMESRV_ADDR={namesrv_addr}", flush=True)
        if sys.stderr.isatty():
            print(welcome(node, config, namesrv_addr), file=sys.stderr, flush=True)
        await stopping
    finally:
        stopping.cancel()
        await node.stop()


def welcome(node: Node, config: BrokerConfig, namesrv_addr: str) -> str:
    """What runs here, in three lines for a person at a terminal."""
    line = "5.5" if config.is_5 else "4.9"
    return (
        f"name server {namesrv_addr}, broker {config.broker_name} {node.broker_address}, like RocketMQ {line}\n"
        f"store {config.store.root.absolute()}\n"
        "Ctrl-C stops it; `pocketmq topics`, `groups`, `lag` and `tail TOPIC` look inside"
    )


def write_ports(file: Path, node: Node) -> None:
    """Write the addresses as JSON, at once: a reader sees all of the file or none. `StartError` if it cannot be."""
    ports = {
        "namesrv": node.namesrv_address or None,
        "broker": node.broker_address,
        "admin": None,
        "grpc": None,
    }
    half = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        half.write_text(json.dumps(ports) + "\n")
        half.replace(file)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise StartError(f"cannot write --ports-file {file}: {error.strerror}") from error


def _on_signals(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        try:
            loop.add_signal_handler(number, stop)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))
