"""Runs the server process: event loop, start, signals, stop.

`NAMESRV_ADDR=host:port` is written to standard output once clients can connect: scripts wait for that line. What runs
beside the broker in the same loop (a `Companion`, such as the HTTP port) starts before that line and stops before the
broker; its addresses follow on lines of their own.
"""

import asyncio
import contextlib
import gc
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Final

from .config.broker_config import BrokerConfig
from .config.name_server_config import NameServerConfig
from .errors import StartError
from .node import Node
from .time.timers import OwnTime

Companion = Callable[[Node], AbstractAsyncContextManager[Mapping[str, str]]]
"""Something that runs while the node does. It returns its addresses, a variable of the environment -> address."""
_KEYS: Final = {"POCKETMQ_ADMIN": "admin", "GRPC_ENDPOINT": "grpc"}
"""Variable -> key in the ports file."""

WANTED_FILES: Final = 65536
WANTED_TABLE: Final = 16384
"""Descriptors for which the system's table has room from the start: 128 KiB of the kernel's memory."""
_SIGNALS: Final = tuple(
    signal.Signals[name] for name in ("SIGTERM", "SIGINT", "SIGHUP") if name in signal.Signals.__members__
)
SAME_SIGNAL_SECONDS: Final = 1.0


def run(
    config: BrokerConfig,
    name_server_config: NameServerConfig | None,
    journal_folder: Path | None = None,
    ports_file: Path | None = None,
    beside: Sequence[Companion] = (),
    *,
    time: OwnTime | None = None,
) -> bool:
    """Serve until SIGTERM, SIGINT or SIGHUP; False if the store did not stop cleanly. `StartError` or `StoreError` if
    it cannot start; nothing stays open.

    `ports_file` gets the addresses as JSON: namesrv, broker, admin, grpc; null for what does not run. With
    `time` the broker's clock stands still until it is moved.
    """
    raise_file_limit()
    grow_descriptor_table()
    if ports_file is not None:
        remove_ports(ports_file)  # those of an earlier run: a script waits for the file
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        node = Node(
            config, name_server_config, host=config.bind_address, time=time, journal_folder=journal_folder
        )
        runner.run(_serve(node, config, ports_file, beside))
        return node.stops_cleanly


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


def grow_descriptor_table() -> None:
    """Make room for many descriptors at once, while the process has one thread.

    Linux enlarges a full table to four times its size (64, 256, 1024 ...), and in a process with threads each time
    waits until every processor has let go of the old one: 5 to 20 ms in which the event loop stands still.
    """
    try:
        import fcntl
        import resource
    except ImportError:  # Windows
        return
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = (WANTED_TABLE if soft == resource.RLIM_INFINITY else min(WANTED_TABLE, soft)) - 1
    with open(os.devnull, "rb") as null, contextlib.suppress(OSError):
        os.close(fcntl.fcntl(null, fcntl.F_DUPFD_CLOEXEC, highest))


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Creates uvloop's event loops; `None` means asyncio's own, if uvloop is not installed."""
    try:
        import uvloop
    except ImportError:  # not available for this platform
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _serve(
    node: Node, config: BrokerConfig, ports_file: Path | None, beside: Sequence[Companion]
) -> None:
    stop_requested = asyncio.Event()
    on_signals(stop_requested.set)
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
        async with AsyncExitStack() as running:
            addresses: dict[str, str] = {}
            for start in beside:
                addresses.update(await running.enter_async_context(start(node)))
            if ports_file is not None:
                write_ports(ports_file, node, addresses)
            print(f"NAMESRV_ADDR={namesrv_addr}")
            print("".join(f"{name}={address}\n" for name, address in addresses.items()), end="", flush=True)
            if sys.stderr.isatty():
                print(welcome(node, config, namesrv_addr), file=sys.stderr, flush=True)
            freeze_start_objects()
            await stopping
    finally:
        stopping.cancel()
        if ports_file is not None:
            with contextlib.suppress(StartError):
                remove_ports(ports_file)
        await node.stop()


def freeze_start_objects() -> None:
    """Leave the objects of the start out of all later garbage collections: walking them takes 10 ms and frees none."""
    gc.freeze()
    gc.enable()


def welcome(node: Node, config: BrokerConfig, namesrv_addr: str) -> str:
    """What runs here, in three lines for a person at a terminal."""
    line = "5.5" if config.is_5 else "4.9"
    return (
        f"name server {namesrv_addr}, broker {config.broker_name} {node.broker_address}, like RocketMQ {line}\n"
        f"store {config.store.root.absolute()}{', virtual time' if node.time is not None else ''}\n"
        "Ctrl-C stops it; `pocketmq topics`, `groups`, `lag` and `tail TOPIC` look inside"
    )


def write_ports(file: Path, node: Node, addresses: Mapping[str, str]) -> None:
    """Write all addresses as JSON, at once: a reader sees all of the file or none. `StartError` if it cannot be.

    `addresses` are those of what runs beside the node.
    """
    ports = {"namesrv": node.namesrv_address or None, "broker": node.bound_address}
    ports |= {key: addresses.get(name) for name, key in _KEYS.items()}
    half = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        if file.exists():
            half.touch(0o600)
            shutil.copymode(file, half)
        half.write_text(json.dumps(ports) + "\n")
        half.replace(file)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise StartError(f"cannot write --ports-file {file}: {error.strerror}") from error


def remove_ports(file: Path) -> None:
    """Remove a ports file: its addresses are not served now. `StartError` if that fails."""
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise StartError(f"cannot remove --ports-file {file}: {error.strerror}") from error


def on_signals(stop: Callable[[], None]) -> None:
    """Call `stop` on the running loop at SIGTERM, SIGINT and SIGHUP. An ignored SIGHUP stays ignored: `nohup` asked.

    A second signal ends the process at once, whatever it waits for, as a kill would; not one that arrives within a
    second, because a terminal and a parent process may both pass the first one on.
    """
    loop = asyncio.get_running_loop()
    stopped_at = 0.0

    def stop_once() -> None:
        nonlocal stopped_at
        stopped_at = time.monotonic()
        for number in _SIGNALS:
            if loop.remove_signal_handler(number):
                signal.signal(number, end_at_once)
        stop()

    def end_at_once(number: int, _: object) -> None:
        if time.monotonic() - stopped_at > SAME_SIGNAL_SECONDS:
            os.write(
                2, b"pocketmq: ended by a second signal, nothing more is saved: the next start recovers\n"
            )
            os._exit(128 + number)

    for number in _SIGNALS:
        if number.name == "SIGHUP" and signal.getsignal(number) is signal.SIG_IGN:
            continue
        try:
            loop.add_signal_handler(number, stop_once)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))
